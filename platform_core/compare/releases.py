"""A job's new release compared with its live one, at the newest position at which both stood."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from platform_core.compare import Comparison, Explain, Side, Verdict, compare, verdict
from platform_core.compare.columns import KEY, SchemaDifference
from platform_core.control import comparisons, holds, releases
from platform_core.control.comparisons import ComparisonRecord
from platform_core.control.positions import Committed
from platform_core.control.releases import CANDIDATE, Release
from platform_core.control.store import ControlStore
from platform_core.declare.expected import ROWS, expected
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.names import ReleaseId
from platform_core.settings import Settings

HOLD_SECONDS = 3600.0  # far longer than a comparison takes; whoever dies in one lets go all the same


@dataclass(frozen=True)
class Pair:
    """Two releases of a job, the older one left, and where they met."""

    left: Release
    right: Release
    met: tuple[Committed, Committed]

    def side(self, settings: Settings, release: Release) -> Side:
        committed = self.met[0] if release is self.left else self.met[1]
        layout = release.manifest.get("declared", {}).get("output", {}).get("layout")
        return Side(
            release=str(release.id),
            place=settings.storage.table(release.id),
            version=committed.table_version or 0,
            position=committed.position,
            layout=json.dumps(layout, sort_keys=True),
        )


@dataclass(frozen=True)
class Outcome:
    found: Comparison
    verdict: Verdict
    kept: ComparisonRecord


ExplainedBy = Callable[[Pair, Mapping[str, str]], Explain]


def compare_releases(
    settings: Settings,
    store: ControlStore,
    job: str,
    candidate: ReleaseId | None = None,
    *,
    by: str,
    expect: Mapping[str, str] | None = None,
    explained_by: ExplainedBy | None = None,
) -> Outcome:
    """1 pair, 2 hold both versions, 3 compare, 4 judge, 5 keep the verdict.

    `expect` adds to what the newer release declares. `explained_by` is asked when there are differences left.
    """
    pair = pair_of(store, job, candidate)
    allowed = {**pair.right.manifest.get("declared", {}).get("expect", {}), **(expect or {})}
    left, right = pair.side(settings, pair.left), pair.side(settings, pair.right)
    keys = [tuple(release.manifest["output"]["key"]) for release in (pair.left, pair.right)]
    with _held(store, pair, by):
        found = compare(
            left,
            right,
            keys[1],
            folder=settings.storage.comparisons(job),
            expect=allowed,
            explain=explained_by(pair, allowed) if explained_by else None,
        )
    found = found if keys[0] == keys[1] else _with_keys(found, keys[0], keys[1], allowed)
    judged = verdict(found)
    return Outcome(found, judged, _keep(store, pair, found, judged, by))


def pair_of(store: ControlStore, job: str, candidate: ReleaseId | None = None) -> Pair:
    """The live release and the candidate, or the one that is named; without a candidate the one on standby."""
    live, known = releases.live_or_refused(store, job), releases.of_job(store, job)
    other = _named(known, candidate) if candidate else _second(known)
    if other is None or other.id == live.id:
        raise UsageError(
            f"Job {job!r} has no release to compare with {live.id}.", remedy=f"`weir release {job}` makes a candidate."
        )
    left, right = sorted((live, other), key=lambda one: one.id.number)
    met = comparisons.met(store, left.id, right.id)
    if met is None:
        raise ServiceUnavailable(
            f"{left.id} and {right.id} have stood at no position together yet.",
            remedy=f"{other.id} is {other.state}; wait until it follows, see `weir status`.",
        )
    return Pair(left, right, met)


def _named(known: list[Release], release: ReleaseId) -> Release | None:
    found = next((one for one in known if one.id == release), None)
    if found is None or found.state in ("retired", "failed"):
        state = found.state if found else "not there"
        raise UsageError(f"{release} is {state}.", remedy="See `weir status` for what there is.")
    return found


def _second(known: list[Release]) -> Release | None:
    for states in (CANDIDATE, ("standby",)):
        found = [one for one in known if one.state in states]
        if found:
            return found[-1]
    return None


@contextmanager
def _held(store: ControlStore, pair: Pair, by: str) -> Generator[None]:
    claimed: list[int] = []
    try:
        for release, committed in zip((pair.left, pair.right), pair.met, strict=True):
            why = f"a comparison by {by}"
            version = committed.table_version
            hold = holds.claim(store, release.id, "table", why, version=version, seconds=HOLD_SECONDS)
            claimed.append(hold.id)
        yield
    finally:
        for hold in claimed:
            holds.drop(store, hold)


def _with_keys(found: Comparison, left: Any, right: Any, expect: Mapping[str, str]) -> Comparison:
    """Another key makes other rows: that is expected where rows may come and go."""
    rows = expected(expect[ROWS], ROWS) if ROWS in expect else None
    one = SchemaDifference(KEY, ", ".join(left), ", ".join(right), rows is not None and rows.what == "changes")
    return replace(found, schema=(*found.schema, one))


def _keep(store: ControlStore, pair: Pair, found: Comparison, judged: Verdict, by: str) -> ComparisonRecord:
    return comparisons.keep(
        store,
        (pair.left.id, found.left_version),
        (pair.right.id, found.right_version),
        pair.met[1].position,
        passed=judged.passed,
        reasons=judged.reasons,
        notes=judged.notes,
        figures=found.figures(),
        seconds=found.seconds,
        by=by,
    )
