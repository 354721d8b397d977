"""Whatever dies, in whatever order words arrive: aliases move together, readers never step back, and it ends.

Drivers behave as platform_core/control/cutovers.py asks of them; supervisors are the real `carry`, cut at its steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from platform_core.control import aliases, cutovers, leases, positions, releases
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.leases import Lease, driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import LeaseHeld, Superseded, UsageError
from platform_core.names import ReleaseId
from platform_core.release import carrying
from tests.control.cutover_words import HOUR, expire, table_of
from tests.control.words import facts

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)
EXAMPLES = 25
QUICK = settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None, database=None)
ME = Owner("another-machine", 1, 1.0)  # its death is not seen; its lease runs out


@dataclass
class Table:
    """What stands on disk: the truth, which outlives every process."""

    offset: int = 0
    batch: int = -1

    def position(self, release: ReleaseId) -> Position:
        return Position(str(release), self.batch, {"t": {0: self.offset}})


@dataclass
class Driver:
    """A process that runs a release. `at` is where its table is; `lost` says what dies with its next word."""

    store: ControlStore
    release: ReleaseId
    table: Table
    lease: Lease
    still: bool = False  # it has told that it stands still

    def turn(self, dies_after_commit: bool = False) -> bool:
        """One look and one act; False when it ends."""
        found, state = cutovers.of_release(self.store, self.release), releases.get(self.store, self.release).state
        if found is not None and found.phase != "swapped":
            self._take_part(found, state)
            return True
        self.still = False
        return self._work(state, dies_after_commit)

    def _take_part(self, found: Cutover, state: str) -> None:
        move = found.move_of(self.release)
        assert move is not None
        if found.holds(self.release):
            self._record()
            cutovers.tell_held(self.store, self.lease, found.id, self.table.position(self.release))
            self.still = True
        elif found.may_abort and move.new == self.release and move.held is not None:
            self._align(found, move.held)
        elif found.phase == "flipped" and move.new == self.release:
            assert state == "live"
            cutovers.tell_swapped(self.store, self.lease, found.id)

    def _align(self, found: Cutover, held: Position) -> None:
        target = held.offsets["t"][0]
        if self.table.offset < target:
            self._commit(target)
        if self.table.offset == target:
            self._record()
            where = self.table.position(self.release)
            cutovers.tell_aligned(self.store, self.lease, found.id, where, self.table.batch)

    def _work(self, state: str, dies: bool) -> bool:
        if state == "live":
            self._commit(self.table.offset + 1)
        else:
            live = _live(self.store, self.release.job)
            newest = None if live is None else positions.latest(self.store, live)
            if newest is not None and newest[0].offsets["t"][0] > self.table.offset:
                self._commit(newest[0].offsets["t"][0])
        if not dies:
            self._record()
        return not dies

    def _commit(self, offset: int) -> None:
        """The sink is the fence: whoever has no lease commits nothing."""
        assert not self.still
        with self.store.transaction() as cursor:
            leases.check(cursor, self.lease)
        self.table.offset, self.table.batch = offset, self.table.batch + 1

    def _record(self) -> None:
        if self.table.batch >= 0:
            positions.record(self.store, self.lease, self.table.position(self.release), facts(self.table.batch))


@dataclass
class Job:
    name: str
    tables: dict[ReleaseId, Table] = field(default_factory=dict[ReleaseId, Table])
    drivers: dict[ReleaseId, Driver] = field(default_factory=dict[ReleaseId, Driver])
    zombies: list[Driver] = field(default_factory=list[Driver])
    shown: int = 0  # the furthest that a reader has seen

    @property
    def table(self) -> str:
        return table_of(ReleaseId(self.name, 1))


def _live(store: ControlStore, job: str) -> ReleaseId | None:
    return next((one.id for one in releases.of_job(store, job) if one.state == "live"), None)


class Fate(RuleBasedStateMachine):
    store: ControlStore

    def __init__(self) -> None:
        super().__init__()
        self.jobs = [self._job(), self._job()]
        self.flipped: set[int] = set()
        self.words: list[
            tuple[Cutover, ReleaseId, int, tuple[Position, int]]
        ] = []  # of supervisors that were cut in the middle

    def _job(self) -> Job:
        job = Job(f"fate_{next(_jobs)}")
        for number, state in ((1, "live"), (2, "following")):
            release = ReleaseId(job.name, number)
            releases.create(
                self.store,
                release,
                archive_sha256="",
                fingerprint="",
                manifest={},
                topics={},
                by="a test",
                state="live" if state == "live" else "following",
            )
            job.tables[release] = Table()
            self._begin(job, release)
        aliases.point(self.store, job.table, ReleaseId(job.name, 1), None, "a test")
        job.drivers[ReleaseId(job.name, 1)].turn()
        return job

    def _begin(self, job: Job, release: ReleaseId) -> None:
        try:
            lease = leases.acquire(self.store, driver_lease(release), ME, HOUR)
        except LeaseHeld:
            return
        job.drivers[release] = Driver(self.store, release, job.tables[release], lease)

    def _turn(self, job: Job, driver: Driver, dies: bool = False) -> None:
        try:
            goes_on = driver.turn(dies)
        except Superseded:
            goes_on = False
        if not goes_on and job.drivers.get(driver.release) is driver:
            self._lose(job, driver)

    def _lose(self, job: Job, driver: Driver) -> None:
        del job.drivers[driver.release]
        with self.store.transaction() as cursor:
            cursor.execute(
                "update weir.leases set expires_at = clock_timestamp() - interval '1 ms' "
                "where name = %s and epoch = %s",
                (driver.lease.name, driver.lease.epoch),
            )

    def _standing(self, release: ReleaseId) -> tuple[Position, int] | None:
        for job in self.jobs:
            if release in job.tables and job.tables[release].batch >= 0:
                return job.tables[release].position(release), job.tables[release].batch
        return None

    def _open(self) -> list[Cutover]:
        mine = {job.table for job in self.jobs}
        return [one for one in cutovers.all_open(self.store) if mine & set(one.tables)]

    # What happens

    @rule(which=st.integers(0, 1), number=st.integers(1, 2), dies=st.booleans() | st.just(False))
    def a_driver_acts(self, which: int, number: int, dies: bool) -> None:
        """It may die between its table's commit and the record of it."""
        job = self.jobs[which]
        driver = job.drivers.get(ReleaseId(job.name, number))
        if driver is not None:
            self._turn(job, driver, dies)

    @rule(which=st.integers(0, 1), number=st.integers(1, 2), wakes=st.booleans())
    def a_driver_loses_its_lease(self, which: int, number: int, wakes: bool) -> None:
        job = self.jobs[which]
        driver = job.drivers.get(ReleaseId(job.name, number))
        if driver is not None:
            self._lose(job, driver)
            if wakes:
                job.zombies.append(driver)

    @precondition(lambda self: any(job.zombies for job in self.jobs))
    @rule(which=st.integers(0, 1))
    def a_frozen_driver_wakes(self, which: int) -> None:
        job = self.jobs[which]
        for driver in job.zombies:
            self._turn(job, driver)
        job.zombies.clear()

    @rule(which=st.integers(0, 1), number=st.integers(1, 2))
    def a_driver_begins(self, which: int, number: int) -> None:
        job = self.jobs[which]
        if ReleaseId(job.name, number) not in job.drivers:
            self._begin(job, ReleaseId(job.name, number))

    @rule(both=st.booleans(), which=st.integers(0, 1), by=st.sampled_from(["ada", "bob"]), again=st.booleans())
    def somebody_asks(self, both: bool, which: int, by: str, again: bool) -> None:
        """`again`: the answer was lost, and the same is asked once more."""
        for _ in range(1 + again):
            moves = [self._move(job) for job in (self.jobs if both else [self.jobs[which]])]
            back = any(move.new.number == 1 for move in moves)
            try:
                cutovers.request(self.store, moves, "rollback" if back else "cutover", by, HOUR)
            except UsageError:
                assert self._open(), "refused while nothing was open"

    def _move(self, job: Job) -> Move:
        live = _live(self.store, job.name)
        assert live is not None
        return Move(job.table, live, ReleaseId(job.name, 3 - live.number))

    @rule()
    def somebody_changes_their_mind(self) -> None:
        for one in self._open():
            cutovers.abort(self.store, one.id, "changed my mind")

    @rule()
    def a_deadline_passes(self) -> None:
        for one in self._open():
            expire(self.store, one)

    @rule(times=st.integers(1, 2))
    def supervisors_carry(self, times: int) -> None:
        for _ in range(times):
            for one in self._open():
                carrying.step(self.store, one, self._standing)

    @rule()
    def a_supervisor_is_stopped_before_it_speaks_for_the_dead(self) -> None:
        for one in self._open():
            for move in one.moves if one.may_abort else ():
                try:
                    with self.store.transaction() as cursor:
                        epoch = leases.fence(cursor, driver_lease(move.old))
                except LeaseHeld:
                    continue
                where = self._standing(move.old)
                assert where is not None
                self.words.append((one, move.old, epoch, where))

    @precondition(lambda self: self.words)
    @rule()
    def that_supervisor_goes_on(self) -> None:
        for cutover, release, epoch, where in self.words:
            cutovers.hold_for(self.store, cutover.id, release, epoch, *where)
        self.words.clear()

    @rule()
    def a_stale_supervisor_flips(self) -> None:
        """It looked long ago: only the transaction itself protects."""
        for one in self._open():
            cutovers.flip(self.store, one.id)

    # What always holds

    @invariant()
    def a_job_has_one_live_release_and_it_is_the_one_that_readers_see(self) -> None:
        for job in self.jobs:
            live = [one.id for one in releases.of_job(self.store, job.name) if one.state == "live"]
            alias = aliases.live(self.store, job.table)
            assert alias is not None
            assert live == [alias.release]

    @invariant()
    def tables_move_together(self) -> None:
        """What is open is wholly old, or wholly new."""
        for one in self._open():
            seen = aliases.resolve(self.store, one.tables)
            for move in one.moves:
                assert seen[move.table].release == (move.old if one.may_abort else move.new)

    @invariant()
    def a_table_is_in_one_cutover_at_most(self) -> None:
        tables = [table for one in self._open() for table in one.tables]
        assert len(tables) == len(set(tables))

    @invariant()
    def what_has_flipped_goes_forward(self) -> None:
        for job in self.jobs:
            for one in cutovers.of_table(self.store, job.table):
                if one.phase == "flipped":
                    self.flipped.add(one.id)
                assert one.id not in self.flipped or one.phase in ("flipped", "swapped")

    @invariant()
    def readers_never_step_back(self) -> None:
        """The live table never shows less than was shown: O was the old one's end, and the new one's beginning."""
        for job in self.jobs:
            live = _live(self.store, job.name)
            assert live is not None
            assert job.tables[live].offset >= job.shown
            job.shown = job.tables[live].offset

    def teardown(self) -> None:
        """From wherever it got: left in peace, everything ends, and the live releases move."""
        for turn in range(8):
            for job in self.jobs:
                for release in job.tables:
                    if release not in job.drivers:
                        self._begin(job, release)
                    if (driver := job.drivers.get(release)) is not None:
                        self._turn(job, driver)
            self.supervisors_carry(1)
            if turn == 5:
                self.a_deadline_passes()
        assert self._open() == []
        before = [job.shown for job in self.jobs]
        for job in self.jobs:
            live = _live(self.store, job.name)
            assert live is not None
            self._turn(job, job.drivers[live])
        self.readers_never_step_back()
        assert all(job.shown > was for job, was in zip(self.jobs, before, strict=True))


def test_whatever_happens_tables_move_together_and_readers_never_step_back(store: ControlStore) -> None:
    Fate.store = store
    with store.transaction() as cursor:  # thousands of commits, none of which has to outlive this machine
        cursor.execute("alter database weir set synchronous_commit = off")
    store.close()
    try:
        run_state_machine_as_test(Fate, settings=QUICK)
    finally:
        with store.transaction() as cursor:
            cursor.execute("alter database weir reset synchronous_commit")
        store.close()
