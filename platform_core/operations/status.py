"""What `weir status` shows, as values: read from the control store, decided in pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from platform_core.control import catch_up, drivers, leases, progress, releases, services, wanted
from platform_core.control.catch_up import CatchUpProgress
from platform_core.control.drivers import DriverState
from platform_core.control.leases import driver_lease
from platform_core.control.progress import Progress
from platform_core.control.releases import Release
from platform_core.control.services import Beat, SupervisorHealth
from platform_core.control.store import ControlStore
from platform_core.control.wanted import Wanted
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class StatusLine:
    """One release, as `weir status` shows it."""

    job: str
    release: str
    role: str  # the release's own state: live, standby, ...
    wanted: str
    state: str
    lag: int | None = None
    rows_per_second: float | None = None
    freshness_seconds: float | None = None
    batch: int | None = None
    batch_seconds: float | None = None
    batch_age_seconds: float | None = None
    late: int | None = None
    rejected: int | None = None
    restarts: int = 0
    pid: int | None = None
    reason: str = ""
    revision: int = 0  # of its code
    catch_up: Mapping[str, Any] | None = None  # what it has before it, of a release that is not yet where it shall be

    def cells(self) -> tuple[Any, ...]:
        shown = self.state if self.role == "live" else f"{self.state} ({self.role})"
        times = (_seconds(self.freshness_seconds), _seconds(self.batch_seconds))
        rate = None if self.rows_per_second is None else round(self.rows_per_second)
        counts = (self.late, self.rejected, self.restarts)
        version = self.release.rpartition("@")[2] + (f".{self.revision}" if self.revision else "")
        return (self.job, version, shown, self.lag, rate, *times, *counts, self.why)

    @property
    def why(self) -> str:
        """Why it is not as it should be, or how far it has come."""
        return self.reason or (self.catch_up or {}).get("says", "")


@dataclass(frozen=True)
class StatusFacts:
    """All that the control store says, as one read gave it."""

    releases: Sequence[Release]
    wanted: Mapping[ReleaseId, Wanted]
    drivers: Mapping[ReleaseId, DriverState]
    alive: frozenset[str]  # names of leases
    progress: Mapping[ReleaseId, Progress]
    beats: Mapping[str, Beat]
    cutovers: Sequence[Cutover] = ()  # under way
    catch_ups: Mapping[ReleaseId, CatchUpProgress] = field(default_factory=dict[ReleaseId, CatchUpProgress])

    @property
    def supervision(self) -> SupervisorHealth:
        return services.supervision(self.beats)


def read(store: ControlStore) -> StatusFacts:
    with store.transaction() as cursor:
        alive = frozenset(name for name, lease in leases.among(cursor, "driver/").items() if lease.alive)
    return StatusFacts(
        releases=releases.all(store),
        wanted=wanted.all(store),
        drivers=drivers.all(store),
        alive=alive,
        progress=progress.latest(store),
        beats=services.all(store),
        cutovers=protocol.all_open(store),
        catch_ups=catch_up.read(store),
    )


def lines(facts: StatusFacts, jobs: frozenset[str] = frozenset()) -> list[StatusLine]:
    shown = [one for one in facts.releases if one.state != "retired" and (not jobs or one.id.job in jobs)]
    return [_line(one, facts) for one in shown]


def _line(release: Release, facts: StatusFacts) -> StatusLine:
    asked, driver = facts.wanted.get(release.id), facts.drivers.get(release.id)
    known = {} if release.id not in facts.progress else _measured(facts.progress[release.id])
    state = state_of(asked, driver, alive=driver_lease(release.id) in facts.alive)
    before_it = facts.catch_ups.get(release.id)
    return StatusLine(
        job=release.id.job,
        release=str(release.id),
        role=release.state,
        wanted=asked.state if asked else "",
        state=state,
        restarts=driver.restarts if driver else 0,
        pid=driver.pid if driver and state == "running" else None,
        reason=_reason(state, asked, driver, release) or _moving(release, facts),
        revision=release.revision,
        catch_up=before_it.plain() if before_it else None,
        **known,
    )


def state_of(asked: Wanted | None, driver: DriverState | None, *, alive: bool) -> str:
    """One word: what is true, where it differs from what is wanted."""
    if asked is None and driver is None:
        return "not started"
    if driver is not None and driver.given_up:
        return "failed"
    if driver is not None and driver.state in ("running", "stopping"):
        return driver.state if alive else "silent"
    if asked is not None and asked.state != "run":
        return "paused" if asked.state == "pause" else "stopped"
    return "waiting" if driver is None or driver.state == "stopped" else driver.state


def _reason(state: str, asked: Wanted | None, driver: DriverState | None, release: Release) -> str:
    if state == "silent":
        return "its driver has stopped renewing its lease"
    if state in ("failed", "waiting", "starting") and driver is not None:
        return driver.reason
    if state in ("paused", "stopped") and asked is not None:
        return asked.reason or f"by {asked.by}"
    return release.reason if release.state == "failed" else ""


def _moving(release: Release, facts: StatusFacts) -> str:
    """The cutover that it takes part in."""
    for one in facts.cutovers:
        if any(release.id in (move.old, move.new) for move in one.moves):
            return f"{one.kind} {one.id} is {one.phase}, asked by {one.by}{': ' if one.why else ''}{one.why}"
    return ""


def _measured(progress: Progress) -> dict[str, Any]:
    facts = progress.facts
    return {
        "lag": facts.total_lag,
        "rows_per_second": round(facts.records_per_second, 1),
        "freshness_seconds": facts.freshness_seconds,
        "batch": facts.batch,
        "batch_seconds": facts.batch_seconds,
        "batch_age_seconds": round(progress.age_seconds, 1),
        "late": progress.totals["late"],
        "rejected": progress.totals["rejected"],
    }


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
