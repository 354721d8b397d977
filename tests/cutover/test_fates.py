"""Whatever dies, in whatever order words arrive: aliases move together, readers never step back, and it ends.

Drivers behave as platform_core/cutover/protocol.py asks of them; supervisors are the real `step`, cut at its steps.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from platform_core.control import aliases, leases
from platform_core.control.leases import driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol, reconcile
from platform_core.cutover.model import Cutover, Move
from platform_core.errors import LeaseHeld, Superseded, UsageError
from platform_core.names import ReleaseId
from tests import properties
from tests.control.words import created
from tests.cutover.words import HOUR, expire
from tests.cutover.world import Driver, Job, Look, Table, live_of

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)
OFTEN = ("drivers_act",) * 9 + ("supervisors_reconcile",) * 5 + ("somebody_asks",) * 3 + ("drivers_begin",) * 3
SELDOM = (
    "one_dies_before_it_has_recorded_its_commit",
    "one_loses_its_lease",
    "the_frozen_wake",
    "somebody_changes_their_mind",
    "a_deadline_passes",
    "one_is_cut_before_it_tells_for_a_dead_driver",
    "that_one_goes_on",
    "a_stale_one_flips",
)
EVENTS = OFTEN + SELDOM
ME = Owner("another-machine", 1, 1.0)  # its death is not seen; its lease runs out


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
            created(self.store, release, "live" if state == "live" else "following")
            job.tables[release] = Table()
            self._begin(job, release)
        aliases.point(self.store, job.table, ReleaseId(job.name, 1), None, "a test")
        for driver in list(job.drivers.values()):
            driver.turn()
        return job

    def _begin(self, job: Job, release: ReleaseId) -> None:
        try:
            lease = leases.acquire(self.store, driver_lease(release), ME, HOUR)
        except LeaseHeld:
            return
        job.drivers[release] = Driver(self.store, release, job.tables[release], lease)

    def _turn(self, job: Job, driver: Driver, dies: bool = False, stale: bool = False, near: bool = True) -> None:
        try:
            goes_on = driver.turn(dies, stale, near)
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

    def _table_at(self, release: ReleaseId) -> tuple[Position, int] | None:
        for job in self.jobs:
            if release in job.tables and job.tables[release].batch >= 0:
                return job.tables[release].position(release), job.tables[release].batch
        return None

    def _open(self) -> list[Cutover]:
        mine = {job.table for job in self.jobs}
        return [one for one in protocol.all_open(self.store) if mine & set(one.tables)]

    @rule(data=st.data(), event=st.sampled_from(EVENTS))
    def something_happens(self, data: st.DataObject, event: str) -> None:
        """One rule: of several, each run would leave some out at random, and most cutovers would never end."""
        getattr(self, event)(data)

    def drivers_act(self, data: st.DataObject) -> None:
        for at in data.draw(st.permutations(range(4)))[: data.draw(st.sampled_from([2, 4, 4]))]:
            how = data.draw(st.sampled_from(["", "", "", "", "stale", "far"]))
            self._one_acts(at, stale=how == "stale", near=how != "far")

    def one_dies_before_it_has_recorded_its_commit(self, data: st.DataObject) -> None:
        self._one_acts(data.draw(st.integers(0, 3)), dies=True)

    def one_loses_its_lease(self, data: st.DataObject) -> None:
        job, release = self._which(data.draw(st.integers(0, 3)))
        driver = job.drivers.get(release)
        if driver is not None:
            self._lose(job, driver)
            if data.draw(st.booleans()):
                job.zombies.append(driver)

    def the_frozen_wake(self, _: st.DataObject) -> None:
        for job in self.jobs:
            for driver in job.zombies:
                self._turn(job, driver)
            job.zombies.clear()

    def drivers_begin(self, data: st.DataObject) -> None:
        for at in data.draw(st.sampled_from([(0, 1, 2, 3), (0,), (1,), (2,), (3,)])):
            job, release = self._which(at)
            if release not in job.drivers:
                self._begin(job, release)

    def somebody_asks(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from([(0, 1), (0, 1), (0,), (1,)]))
        before = {table for one in self._open() if one.phase != "flipped" for table in one.tables}
        try:
            self._ask(which)
        except UsageError:
            assert self._open(), "refused while nothing was open"
            return
        assert not before & {self.jobs[at].table for at in which}

    def somebody_changes_their_mind(self, _: st.DataObject) -> None:
        for one in self._open():
            protocol.abort(self.store, one.id, "changed my mind")

    def a_deadline_passes(self, _: st.DataObject) -> None:
        for one in self._open():
            expire(self.store, one)

    def supervisors_reconcile(self, _: st.DataObject) -> None:
        for one in self._open():
            reconcile.step(self.store, one, self._table_at)

    def one_is_cut_before_it_tells_for_a_dead_driver(self, _: st.DataObject) -> None:
        for one in self._open():
            for move in one.moves if one.may_abort else ():
                try:
                    with self.store.transaction() as cursor:
                        epoch = leases.fence(cursor, driver_lease(move.old))
                except LeaseHeld:
                    continue
                where = self._table_at(move.old)
                assert where is not None
                self.words.append((one, move.old, epoch, where))

    def that_one_goes_on(self, _: st.DataObject) -> None:
        for cutover, release, epoch, where in self.words:
            protocol.pause_dead(self.store, cutover.id, release, epoch, *where)
        self.words.clear()

    def a_stale_one_flips(self, _: st.DataObject) -> None:
        """It looked long ago: only the transaction itself protects."""
        for one in self._open():
            protocol.flip(self.store, one.id)

    def _which(self, at: int) -> tuple[Job, ReleaseId]:
        job = self.jobs[at // 2]
        return job, ReleaseId(job.name, 1 + at % 2)

    def _one_acts(self, at: int, dies: bool = False, stale: bool = False, near: bool = True) -> None:
        job, release = self._which(at)
        driver = job.drivers.get(release)
        if driver is not None:
            self._turn(job, driver, dies, stale, near)

    def _ask(self, which: tuple[int, ...]) -> None:
        moves = [self._move(self.jobs[at]) for at in which]
        back = any(move.new.number == 1 for move in moves)
        protocol.request(self.store, moves, "rollback" if back else "cutover", "ada", HOUR)

    def _move(self, job: Job) -> Move:
        live = live_of(self.store, job.name)
        assert live is not None
        return Move(job.table, live, ReleaseId(job.name, 3 - live.number))

    # What always holds

    @invariant()
    def what_always_holds(self) -> None:
        """All of it on one look at the store: a look for each, after each step, is most of what a run costs."""
        look = Look.at(self.store, self.jobs)
        self._a_job_has_one_live_release_and_it_is_the_one_that_readers_see(look)
        self._tables_move_together(look)
        self._a_table_is_in_one_cutover_at_most(look)
        self._what_has_flipped_goes_forward(look)
        self._readers_never_step_back(look)

    def _a_job_has_one_live_release_and_it_is_the_one_that_readers_see(self, look: Look) -> None:
        for job in self.jobs:
            assert look.live[job.name] == [look.seen[job.table]]

    def _tables_move_together(self, look: Look) -> None:
        """What is open is wholly old, or wholly new."""
        for one in look.open:
            for move in one.moves:
                assert look.seen[move.table] == (move.old if one.may_abort else move.new)

    def _a_table_is_in_one_cutover_at_most(self, look: Look) -> None:
        tables = [table for one in look.open for table in one.tables]
        assert len(tables) == len(set(tables))

    def _what_has_flipped_goes_forward(self, look: Look) -> None:
        for one in look.cutovers:
            if one.phase == "flipped":
                self.flipped.add(one.id)
            assert one.id not in self.flipped or one.phase in ("flipped", "swapped")

    def _readers_never_step_back(self, look: Look) -> None:
        """The live table never shows less than was shown: O was the old one's end, and the new one's beginning."""
        for job in self.jobs:
            offset = job.tables[look.seen[job.table]].offset
            assert offset >= job.shown
            job.shown = offset

    def teardown(self) -> None:
        """From wherever it got: left in peace, everything ends, and the live releases move."""
        for turn in range(8):
            for job in self.jobs:
                for release in job.tables:
                    if release not in job.drivers:
                        self._begin(job, release)
                    if (driver := job.drivers.get(release)) is not None:
                        self._turn(job, driver)
            for one in self._open():
                reconcile.step(self.store, one, self._table_at)
                if turn == 5:
                    expire(self.store, one)
        assert self._open() == []
        before = [job.shown for job in self.jobs]
        for job in self.jobs:
            live = live_of(self.store, job.name)
            assert live is not None
            self._turn(job, job.drivers[live])
        self.what_always_holds()
        assert all(job.shown > was for job, was in zip(self.jobs, before, strict=True))


@properties.tiers(few=20, many=300)
def test_whatever_happens_tables_move_together_and_readers_never_step_back(store: ControlStore, examples: int) -> None:
    Fate.store = store
    with store.transaction() as cursor:  # thousands of commits, none of which has to outlive this machine
        cursor.execute("alter database weir set synchronous_commit = off")
    store.close()
    try:
        run_state_machine_as_test(Fate, settings=properties.of(examples, steps=40 if examples < 100 else 60))
    finally:
        with store.transaction() as cursor:
            cursor.execute("alter database weir reset synchronous_commit")
        store.close()
