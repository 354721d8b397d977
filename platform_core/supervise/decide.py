"""What to do about one release, from what is wanted and what is seen. Pure: the supervisor looks, asks here, and acts.

Nothing starts while a lease lives or a process is known to run. A driver that ended without being asked is tried again
after a pause that doubles, and given up, with the reason kept, after so many failures in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from platform_core.control.drivers import DriverState
from platform_core.control.leases import LeaseRow
from platform_core.control.owners import Owner
from platform_core.control.wanted import Wanted

_TRY_AGAIN = 75  # EX_TEMPFAIL: a driver's own word that a later try may go through
_PERMANENT = frozenset(range(64, 79)) - {_TRY_AGAIN}


@dataclass(frozen=True)
class Limits:
    """Seconds, but for `give_up_after`."""

    give_up_after: int
    backoff: float
    backoff_limit: float
    silence: float  # a process without a lease is stopped after this
    spawning: float  # how long a start without a process may be another supervisor's
    patience: float = 60.0  # from the request to stop to the kill: time to finish a batch
    forgive_after: float = 60.0  # of running, after which earlier failures no longer count


@dataclass(frozen=True)
class Ending:
    """How a process ended, as far as anyone saw it."""

    how: str
    permanent: bool = False

    @classmethod
    def exited(cls, code: int) -> Ending:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return cls(how, code in _PERMANENT)


@dataclass(frozen=True)
class Seen:
    """What this machine shows. A process of another machine is in neither set: its lease alone tells if it lives."""

    living: frozenset[Owner] = frozenset()
    lost: frozenset[Owner] = frozenset()
    spawning: bool = False
    ending: Ending | None = None  # of the newest process
    silent_for: float = 0.0  # how long it has been watched to run without a lease
    stopping_for: float | None = None  # how long since it was asked to stop
    withheld: bool = False  # a cutover is under way from where it stands


@dataclass(frozen=True)
class Case:
    wanted: Wanted | None
    driver: DriverState | None
    lease: LeaseRow | None
    seen: Seen
    now: datetime  # on Postgres's clock, as the rows

    @property
    def held(self) -> bool:
        return self.lease is not None and self.lease.alive and self.lease.owner not in self.seen.lost

    @property
    def outdated(self) -> bool:
        return self.wanted is not None and self.driver is not None and self.driver.generation != self.wanted.generation


@dataclass(frozen=True)
class Nothing:
    why: str


@dataclass(frozen=True)
class StartDriver:
    generation: int
    failures: int
    restarts: int


@dataclass(frozen=True)
class StopDriver:
    """Asks to finish the batch and end."""

    why: str


@dataclass(frozen=True)
class KillDriver:
    why: str


@dataclass(frozen=True)
class Retry:
    failures: int
    next_try_at: datetime
    reason: str


@dataclass(frozen=True)
class GiveUp:
    failures: int
    reason: str
    permanent: bool


@dataclass(frozen=True)
class Forgive:
    """It has run long enough: earlier failures no longer count."""


@dataclass(frozen=True)
class Settle:
    """Nothing runs and nothing shall: write down that it stopped."""


Action = Nothing | StartDriver | StopDriver | KillDriver | Retry | GiveUp | Forgive | Settle


def decide(case: Case, limits: Limits) -> Action:
    if case.wanted is None:
        return Nothing("nobody wants it run or stopped")
    if case.wanted.state != "run":
        return _bring_down(case, limits)
    if case.seen.living:
        return _watch(case, limits)
    if case.held:
        return Nothing("it runs on another machine")
    return _bring_up(case, case.wanted, limits)


def _bring_down(case: Case, limits: Limits) -> Action:
    if case.seen.living:
        return _end(case, limits.patience, "it is wanted to stop")
    if case.held:
        return Nothing("it runs on another machine, and stops by itself")
    if case.seen.spawning:
        return Nothing("it is about to begin, and stops then")
    settled = case.driver is None or case.driver.state == "stopped" or case.driver.given_up
    return Nothing("it is stopped") if settled else Settle()


def _watch(case: Case, limits: Limits) -> Action:
    if case.outdated and case.driver is not None and case.driver.owner in case.seen.living:
        return _end(case, limits.patience, "a restart is wanted")
    if not case.held and case.seen.silent_for > limits.silence:
        return _end(case, limits.silence, "it runs without a lease")
    if case.seen.stopping_for is not None and case.seen.stopping_for > limits.patience:
        return KillDriver("it was asked to stop and does not end")
    return Forgive() if _forgivable(case, limits) else Nothing("it runs")


def _end(case: Case, patience: float, why: str) -> Action:
    if case.seen.stopping_for is None:
        return StopDriver(why)
    return KillDriver(why) if case.seen.stopping_for > patience else Nothing("it is ending")


def _forgivable(case: Case, limits: Limits) -> bool:
    driver = case.driver
    if driver is None or driver.failures == 0 or driver.running_since is None:
        return False
    return case.now - driver.running_since >= timedelta(seconds=limits.forgive_after)


def _bring_up(case: Case, wanted: Wanted, limits: Limits) -> Action:
    driver = case.driver
    if case.seen.spawning:
        return Nothing("it is about to begin")
    if case.seen.withheld:
        return Nothing("a cutover is under way from where it stands")
    if driver is None or case.outdated:
        return StartDriver(wanted.generation, 0, 0 if driver is None else driver.restarts)
    if driver.given_up:
        return Nothing("it was given up")
    if driver.state == "waiting":
        return _wait(case, driver, limits)
    if driver.state == "stopped":  # as after a stop of the whole platform: no failure, and yet never a tight loop
        return _start_when(case, driver, driver.updated_at + timedelta(seconds=limits.backoff), limits)
    if _may_be_anothers(case, driver, limits):
        return Nothing("another supervisor may have begun it")
    return _failed(case, driver, limits)


def _wait(case: Case, driver: DriverState, limits: Limits) -> Action:
    """Without a time it is the driver's own word: a service is away. That is no fault of the job and never given up."""
    if driver.next_try_at is not None:
        return _start_when(case, driver, driver.next_try_at, limits)
    failures = max(1, min(driver.failures + 1, limits.give_up_after - 1))
    return Retry(failures, case.now + timedelta(seconds=pause(failures, limits)), driver.reason)


def _start_when(case: Case, driver: DriverState, at: datetime, limits: Limits) -> Action:
    """A time further ahead than any pause stems from a clock that was set back since."""
    wait = at - case.now
    if timedelta(0) < wait <= timedelta(seconds=limits.backoff_limit):
        return Nothing(f"it begins in {wait.total_seconds():.0f} s")
    again = driver.state == "waiting"
    return StartDriver(driver.generation, driver.failures, driver.restarts + again)


def _may_be_anothers(case: Case, driver: DriverState, limits: Limits) -> bool:
    """A supervisor that died between the row and the process leaves a start that may yet show itself by its lease."""
    unknown = driver.state == "starting" and driver.owner is None and case.seen.ending is None
    return unknown and timedelta(0) <= case.now - driver.updated_at < timedelta(seconds=limits.spawning)


def _failed(case: Case, driver: DriverState, limits: Limits) -> Action:
    ending = case.seen.ending or Ending("is gone, and nobody saw how it ended")
    said = driver.reason if driver.state == "failed" and driver.reason else ""
    reason = said or f"{driver.owner or 'its process'} {ending.how}"
    failures = driver.failures + 1
    if driver.permanent or ending.permanent:
        return GiveUp(failures, reason, permanent=True)
    if failures >= limits.give_up_after:
        counted = f"{reason} (failure {failures} in a row, limit {limits.give_up_after})"
        return GiveUp(failures, counted, permanent=False)
    return Retry(failures, case.now + timedelta(seconds=pause(failures, limits)), reason)


def pause(failures: int, limits: Limits) -> float:
    return min(limits.backoff_limit, limits.backoff * 2 ** min(failures - 1, 30))
