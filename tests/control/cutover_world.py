"""Tables that outlive every process, and drivers that behave as platform_core/control/cutovers.py asks of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from platform_core.control import cutovers, leases, positions, releases
from platform_core.control.cutovers import Cutover
from platform_core.control.leases import Lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from tests.control.cutover_words import table_of
from tests.control.words import facts


@dataclass
class Table:
    """What stands on disk: the truth, which outlives every process."""

    offset: int = 0
    batch: int = -1

    def position(self, release: ReleaseId) -> Position:
        return Position(str(release), self.batch, {"t": {0: self.offset}})


@dataclass
class Driver:
    """A process that runs a release. `at` is where its table is;"""

    store: ControlStore
    release: ReleaseId
    table: Table
    lease: Lease
    still: bool = False  # it has told that it stands still
    seen: tuple[Cutover | None, str] | None = None

    def turn(self, dies_after_commit: bool = False, stale: bool = False) -> bool:
        """One look and one act, or an act by what it saw the last time; False when it ends."""
        if self.seen is None or self.still or not stale:
            state = releases.get(self.store, self.release).state
            self.seen = cutovers.of_release(self.store, self.release), state
            if self.seen[0] is None:  # it has ended: only what is read after that is how it ended
                self.seen = None, releases.get(self.store, self.release).state
        found, state = self.seen
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
            live = live_of(self.store, self.release.job)
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


def live_of(store: ControlStore, job: str) -> ReleaseId | None:
    return next((one.id for one in releases.of_job(store, job) if one.state == "live"), None)
