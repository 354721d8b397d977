"""What must hold before a cutover is asked for: facts go in, refusals come out. Pure but for `facts_of`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from platform_core.control import checks, comparisons, drivers, leases, positions, releases
from platform_core.control.leases import driver_lease
from platform_core.control.position import Position, same_place
from platform_core.control.positions import Committed
from platform_core.control.store import ControlStore
from platform_core.cutover.model import Move
from platform_core.names import ReleaseId

FRESH_SECONDS = 900.0  # a sensor compares more often than that
STEP_SECONDS = 60.0  # a candidate steps every 15 s
_LOOK_BACK = 1000  # positions of the live release, at one a second more than STEP_SECONDS


@dataclass(frozen=True)
class GateComparison:
    """The newest verdict on live and candidate."""

    passed: bool
    reasons: tuple[str, ...]
    age_seconds: float


@dataclass(frozen=True)
class GateFacts:
    table: str
    live: ReleaseId
    candidate: ReleaseId
    state: str  # of the candidate
    runs: bool
    compared: GateComparison | None
    behind_seconds: float | None  # of the live release's commits; None: at none of its recent positions
    clock_behind_ms: int = 0  # of the live release's at the same offsets: so much would its watermark lag
    failing_checks: tuple[str, ...] = ()  # each with what it says


@dataclass(frozen=True)
class Refusal:
    what: str
    remedy: str


def refusals(facts: GateFacts) -> list[Refusal]:
    """Everything at once, so that nobody mends one thing only to hear of the next."""
    return [*_following(facts), *_near(facts), *_verdict(facts), *_checks(facts)]


def _following(facts: GateFacts) -> list[Refusal]:
    if facts.state not in ("following", "standby"):
        left = "Wait until it follows" if facts.state == "replaying" else "Make another with `weir release`"
        return [Refusal(f"{facts.candidate} is {facts.state}", f"{left}; see `weir status`.")]
    if not facts.runs:
        start = f"Start it with `weir start {facts.candidate}`, or see `weir logs {facts.candidate.job}`."
        return [Refusal(f"{facts.candidate} has no running driver", start)]
    return []


def _near(facts: GateFacts) -> list[Refusal]:
    name, live = facts.candidate, facts.live
    if facts.behind_seconds is None:
        return [Refusal(f"{name} stands at no recent position of {live}", "Wait for its next step.")]
    if facts.behind_seconds > STEP_SECONDS:
        how = f"{facts.behind_seconds:.0f} s behind {live}, more than one step ({STEP_SECONDS:.0f} s)"
        return [Refusal(f"{name} is {how}", "Wait until it has caught up.")]
    if facts.clock_behind_ms > 0:
        how = f"at the same offsets its clock is {facts.clock_behind_ms / 1000:.1f} s behind that of {live}"
        return [Refusal(f"{name}: {how}; late records would be taken twice over", "Wait for newer records.")]
    return []


def _verdict(facts: GateFacts) -> list[Refusal]:
    again = f"Run `weir compare {facts.candidate.job}`."
    if facts.compared is None:
        return [Refusal(f"{facts.candidate} was never compared with {facts.live}", again)]
    if not facts.compared.passed:
        reasons = "; ".join(facts.compared.reasons) or "no reason was kept"
        return [Refusal(f"{facts.candidate} differs from {facts.live}: {reasons}", f"Mend or declare it. {again}")]
    if facts.compared.age_seconds > FRESH_SECONDS:
        age = f"{facts.compared.age_seconds / 60:.0f} minutes old, more than {FRESH_SECONDS / 60:.0f}"
        return [Refusal(f"the verdict on {facts.candidate} is {age}", again)]
    return []


def _checks(facts: GateFacts) -> list[Refusal]:
    see = f"See the checks of {facts.candidate.job}_candidate in Dagster."
    return [Refusal(f"{facts.candidate} fails its check {check}", see) for check in facts.failing_checks]


def facts_of(store: ControlStore, move: Move) -> GateFacts:
    candidate, history = move.new, positions.history(store, move.old, _LOOK_BACK)
    stands = positions.latest(store, candidate)
    met = None if stands is None else _met(stands[0], history)
    return GateFacts(
        table=move.table,
        live=move.old,
        candidate=candidate,
        state=releases.get(store, candidate).state,
        runs=_runs(store, candidate),
        compared=_compared(store, move),
        behind_seconds=None if met is None else (history[0].committed_at - met.committed_at).total_seconds(),
        clock_behind_ms=0 if met is None or stands is None else met.position.newest_ms - stands[0].newest_ms,
        failing_checks=tuple(f"{one.check} ({one.says})" for one in checks.failing(store, candidate)),
    )


def _met(stands: Position, history: Sequence[Committed]) -> Committed | None:
    """The live release's newest commit at the very offsets of the candidate."""
    return next((one for one in history if same_place(one.position.places, stands.places)), None)


def _runs(store: ControlStore, release: ReleaseId) -> bool:
    driver, lease = drivers.get(store, release), leases.current(store, driver_lease(release))
    return driver is not None and driver.state == "running" and lease is not None and lease.alive


def _compared(store: ControlStore, move: Move) -> GateComparison | None:
    found = comparisons.newest(store, move.old, move.new)
    if found is None:
        return None
    with store.transaction() as cursor:
        cursor.execute("select extract(epoch from clock_timestamp() - %s)::float8 as age", (found.at,))
        age = float((cursor.fetchone() or {"age": 0.0})["age"])
    return GateComparison(found.passed, tuple(found.reasons), age)
