"""Three tiers of tests by marker, and what each may take: a tier that outgrows its budget fails.

`make quick` runs what needs no service, `make test` all that a change must pass, `make test-long` the rest. Where a
test belongs follows from what it takes; it may say `long`, or `ordinary` where it is too slow for the quick ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

QUICK, ORDINARY, LONG = "quick", "ordinary", "long"

# Fixtures behind which a JVM, a broker or a Postgres starts; or, of `weir` and `demo`, processes of their own.
SERVICES = frozenset({"spark", "kit", "broker", "postgres", "weir", "demo", "page"})
# Its tests start processes without a fixture's help.
STARTS_PROCESSES = frozenset({"tests/services", "tests/browser"})


@dataclass(frozen=True)
class Tier:
    """What `make` runs as one: the marker expression that selects it, and the seconds that its tests may take."""

    command: str
    selects: str
    seconds: float


# The aim is 15 and 25 minutes. Whoever makes tests cheaper lowers the number; nobody raises it.
TIERS = (
    Tier("make quick", QUICK, 60),
    Tier("make test", f"not {LONG}", 35 * 60),
    Tier("make test-long", LONG, 50 * 60),
)


def marker_of(path: str, marks: Collection[str], fixtures: Iterable[str]) -> str:
    """The one marker of its tier that a test has."""
    if LONG in marks:
        return LONG
    starts = "stack" in marks or SERVICES.intersection(fixtures) or Path(path).parent.as_posix() in STARTS_PROCESSES
    return ORDINARY if starts or ORDINARY in marks else QUICK


def whole(expression: str, chosen: Collection[str]) -> Tier | None:
    """The tier that a run is all of; `chosen` is whatever else narrows the run."""
    return next((tier for tier in TIERS if tier.selects == expression and not chosen), None)


def outgrown(tier: Tier, took: Mapping[str, float], busy: float) -> str:
    """Why the tier is over its budget; nothing when it is not.

    `busy` is the share of the machine that others had: what a quiet machine does in a second takes 1 / (1 - busy).
    """
    total, allowed = sum(took.values()), tier.seconds / (1 - min(busy, 0.75))
    if total <= allowed:
        return ""
    slowest = sorted(took.items(), key=lambda one: one[1], reverse=True)[:25]
    return "\n".join(
        [
            f"`{tier.command}` has outgrown its budget: its tests took {total:.0f} s of {tier.seconds:.0f} s"
            f" (of {allowed:.0f} s, with {busy:.0%} of the machine taken by others).",
            f"Make the slowest cheaper, or move what proves no guarantee first to `{LONG}`; see tests/README.md.",
            *(f"{seconds:8.1f} s  {name}" for name, seconds in slowest),
        ]
    )
