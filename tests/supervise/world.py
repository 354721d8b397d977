"""A release, its processes, its lease and its supervisor in miniature: seconds pass, each acts.

Drivers behave as the real one: take the lease, renew it, stop by themselves when that is wanted, say how they end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from platform_core.control.drivers import DriverState
from platform_core.control.leases import LeaseRow
from platform_core.control.owners import Owner
from platform_core.control.wanted import State, Wanted
from platform_core.names import ReleaseId
from platform_core.supervise.decide import (
    Case,
    Ending,
    Forgive,
    GiveUp,
    KillDriver,
    Limits,
    Retry,
    Seen,
    Settle,
    StartDriver,
    StopDriver,
    decide,
)
from platform_core.supervise.unresponsive import UnresponsiveTimers

RELEASE = ReleaseId("job", 1)
LEASE = timedelta(seconds=15)
LIMITS = Limits(give_up_after=5, backoff=2, backoff_limit=60, silence=30, spawning=15)
SECOND = timedelta(seconds=1)


@dataclass
class Process:
    owner: Owner
    generation: int
    by_hand: bool = False
    age: int = 0
    epoch: int = 0  # of its lease; 0: has none yet
    asked_to_stop: bool = False
    frozen: bool = False
    stubborn: bool = False


@dataclass
class World:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    passed: float = 0.0
    wanted: Wanted | None = None
    row: DriverState | None = None
    lease: LeaseRow | None = None
    renewed_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    processes: dict[Owner, Process] = field(default_factory=dict[Owner, Process])
    away: int = 0  # seconds for which the store stays away
    spawning: bool = False
    orphan_in: int | None = None  # a process that a dead supervisor had begun shows itself after so many seconds
    endings: dict[Owner, Ending] = field(default_factory=dict[Owner, Ending])
    patience: UnresponsiveTimers = field(default_factory=lambda: UnresponsiveTimers(most=5.0))
    children: set[Owner] = field(default_factory=set[Owner])  # of the present supervisor
    pids: int = 0

    # What happens from outside

    def want(self, state: State, again: bool = False) -> None:
        before = self.wanted
        fresh = before is None or again or (state == "run" and (before.state != "run" or self.given_up))
        generation = (before.generation if before else 0) + fresh
        self.wanted = Wanted(RELEASE, state, generation, "ada", "", self.now)

    def run_by_hand(self, host: str) -> None:
        self._begin(host, by_hand=True)

    def end(self, owner: Owner, how: Ending, seen: bool = True) -> None:
        del self.processes[owner]
        if seen:
            self.endings[owner] = how

    def supervisor_dies(self, orphan_in: int | None) -> None:
        self.patience, self.endings, self.children = UnresponsiveTimers(most=5.0), {}, set()
        if self.spawning:
            self.spawning, self.orphan_in = False, orphan_in

    # A second passes

    def tick(self) -> None:
        self.now += SECOND
        self.passed += 1.0
        self.away = max(0, self.away - 1)
        self._orphan()
        for process in list(self.processes.values()):
            if not process.frozen:
                self._live(process)
        if self.away == 0:
            self._round()
        else:
            self.patience.blind()

    @property
    def given_up(self) -> bool:
        return self.row is not None and self.row.given_up

    @property
    def held(self) -> bool:
        """As leases._ALIVE says it."""
        if self.lease is None or not self.lease.alive:
            return False
        left = self.lease.expires_at - self.now
        return timedelta(0) < left < 2 * (self.lease.expires_at - self.renewed_at)

    def at_work(self) -> list[Process]:
        return [one for one in self.processes.values() if self._holds(one) and not one.frozen]

    def _holds(self, process: Process) -> bool:
        return self.lease is not None and process.epoch == self.lease.epoch

    def _orphan(self) -> None:
        if self.orphan_in is not None:
            self.orphan_in -= 1
            if self.orphan_in < 0:
                self.orphan_in = None
                self._begin()

    def _begin(self, host: str = "here", *, by_hand: bool = False) -> Owner:
        self.pids += 1
        owner = Owner(host, self.pids, float(self.pids))
        generation = self.wanted.generation if self.wanted else 0
        self.processes[owner] = Process(owner, generation, by_hand)
        return owner

    def _live(self, process: Process) -> None:
        process.age += 1
        if self.away:
            return
        if process.epoch == 0:
            self._take(process)
        elif not self._holds(process):
            self.end(process.owner, Ending.exited(70))
        elif process.asked_to_stop and not process.stubborn:
            self._leave(process)
        else:
            self._renew()
            self._obey(process)

    def _take(self, process: Process) -> None:
        free = not self.held or (self.lease is not None and self._known_lost(self.lease.owner, process.owner.host))
        if free and process.age >= 2:
            process.epoch = (self.lease.epoch if self.lease else 0) + 1
            self.lease = LeaseRow("driver", process.epoch, process.owner, self.now, self.now + LEASE, True)
            self.renewed_at = self.now
            process.generation = self.wanted.generation if self.wanted else 0
            self._say(state="running", owner=process.owner, generation=process.generation, running_since=self.now)
        elif process.age > 30:
            self.end(process.owner, Ending.exited(75))

    def _known_lost(self, owner: Owner, host: str) -> bool:
        return owner.host == host and owner not in self.processes

    def _renew(self) -> None:
        assert self.lease is not None
        self.lease = replace(self.lease, expires_at=self.now + LEASE, alive=True)
        self.renewed_at = self.now

    def _obey(self, process: Process) -> None:
        asked = self.wanted
        if asked is not None and not process.stubborn:
            process.asked_to_stop |= asked.state != "run" or asked.generation != process.generation

    def _leave(self, process: Process) -> None:
        assert self.lease is not None
        self._say(state="stopped", running_since=None)
        self.lease = replace(self.lease, alive=False)
        self.end(process.owner, Ending.exited(0))

    def _say(self, **changes: object) -> None:
        fresh = DriverState(RELEASE, "stopped", None, 0, 0, 0, None, None, "", False, False, self.now)
        self.row = replace(self.row or fresh, **changes, updated_at=self.now)  # type: ignore[arg-type]

    # The supervisor

    def _round(self) -> None:
        if self.spawning:
            self.spawning = False
            child = self._begin()
            self.children.add(child)
            self._say(owner=child)
        self.patience.tick(self.passed)
        action = decide(self.case(), LIMITS)
        match action:
            case StartDriver():
                self._prove_that_nothing_runs()
                self._say(
                    state="starting",
                    owner=None,
                    generation=action.generation,
                    failures=action.failures,
                    next_try_at=None,
                    permanent=False,
                    given_up=False,
                )
                self.spawning = True
            case StopDriver() | KillDriver():
                for owner in self.case().seen.living:
                    self.patience.asked(owner)
                    self._signal(owner, kill=isinstance(action, KillDriver))
            case Retry(failures, at, reason):
                self._say(state="waiting", failures=failures, next_try_at=at, reason=reason)
            case GiveUp(failures, reason, permanent):
                self._say(state="failed", failures=failures, reason=reason, permanent=permanent, given_up=True)
            case Forgive():
                self._say(failures=0)
            case Settle():
                self._say(state="stopped", next_try_at=None)
            case _:
                pass
        self.patience.forget_all_but(frozenset(self.processes))

    def case(self) -> Case:
        owners = {one for one in (self.row and self.row.owner, self.lease and self.lease.owner) if one}
        living = frozenset(one for one in (owners | self.children) & self.processes.keys() if one.host == "here")
        lease = None if self.lease is None else replace(self.lease, alive=self.held)
        seen = Seen(
            living=living,
            lost=frozenset(one for one in owners if self._known_lost(one, "here")),
            spawning=self.spawning,
            ending=self.endings.get(self.row.owner) if self.row and self.row.owner else None,
            silent_for=self.patience.silent_for(living, lease is not None and lease.alive and lease.owner in living),
            stopping_for=self.patience.stopping_for(living),
        )
        return Case(self.wanted, self.row, lease, seen, self.now)

    def _signal(self, owner: Owner, *, kill: bool) -> None:
        if kill:
            self.end(owner, Ending.exited(-9))
        else:
            self.processes[owner].asked_to_stop = True

    def _prove_that_nothing_runs(self) -> None:
        """But for what cannot be known: begun by hand without a lease yet; superseded, which ends when it wakes; frozen
        on another machine for longer than its lease, which goes on or ends when it wakes, by who has the lease then."""
        for one in self.processes.values():
            lapsed_elsewhere = one.owner.host == "there" and one.frozen and not self.held
            assert lapsed_elsewhere or not self._holds(one), f"{one} has the lease"
            assert one.by_hand or one.epoch != 0, f"{one} is about to take the lease"
        assert not self.spawning
        assert self.orphan_in is None, "a process of the former supervisor is on its way"
