"""Tables that outlive every process, and drivers that behave as platform_core/cutover/protocol.py asks of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from platform_core.control import aliases, leases, positions, releases
from platform_core.control.leases import Lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover import store as rows
from platform_core.cutover.model import Cutover
from platform_core.names import ReleaseId
from tests.control.words import facts
from tests.cutover.words import table_of


@dataclass
class Table:
    """What stands on disk: the truth, which outlives every process."""

    offset: int = 0
    batch: int = -1

    def position(self, release: ReleaseId) -> Position:
        return Position(str(release), self.batch, {"t": {0: self.offset}})


@dataclass
class Driver:
    """A process that runs a release: Guard and Course, as far as a cutover sees them."""

    store: ControlStore
    release: ReleaseId
    table: Table
    lease: Lease
    still: bool = False  # it has told a cutover where it stands: until it has looked again, it begins no batch
    seen: tuple[Cutover | None, str] | None = None

    def turn(self, dies_after_commit: bool = False, stale: bool = False, near: bool = True) -> bool:
        """One look and one act, or an act by what it saw the last time; False when it ends.

        `near`: whether the new release has come near, so that the live one stands still (cutover/pause.py).
        """
        if self.seen is None or self.still or not stale:
            self._look()
        assert self.seen is not None
        found, state = self.seen
        move = None if found is None else found.move_of(self.release)
        if found is None or move is None:
            return self._work(state, dies_after_commit)
        if found.pauses(self.release) and (near or move.paused_at is not None):
            self._stand_still(found)
        elif found.may_abort and move.new == self.release and move.paused_at is not None:
            self._align(found, move.paused_at)
        elif found.phase == "flipped" and move.new == self.release:
            assert state == "live"
            protocol.tell_swapped(self.store, self.lease, found.id)
        else:
            return self._work(state, dies_after_commit)
        return True

    def _look(self) -> None:
        """First the cutover, then the state: only what is read after the cutover has ended is how it ended."""
        found = protocol.of_release(self.store, self.release)
        self.seen = found, releases.get(self.store, self.release).state
        self.still = self.still and found is not None and found.pauses(self.release)

    def _stand_still(self, found: Cutover) -> None:
        self._record()
        protocol.tell_paused(self.store, self.lease, found.id, self.table.position(self.release))
        self.still = True

    def _align(self, found: Cutover, held: Position) -> None:
        target = held.offsets["t"][0]
        if self.table.offset < target:
            self._commit(target)
        if self.table.offset == target:
            self._record()
            where = self.table.position(self.release)
            protocol.tell_aligned(self.store, self.lease, found.id, where, self.table.batch)

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
        with self.store.transaction() as cursor:
            leases.check(cursor, self.lease)
        assert not self._is_believed_to_stand_still(), f"{self.release} commits, and a cutover may flip without that"
        self.table.offset, self.table.batch = offset, self.table.batch + 1

    def _is_believed_to_stand_still(self) -> bool:
        """By the store, whatever this driver has seen: its word counts until the cutover has ended or flipped."""
        found = protocol.of_release(self.store, self.release)
        if found is None or not found.pauses(self.release):
            return False
        move = found.move_of(self.release)
        return move is not None and move.paused_at is not None and move.paused_epoch == self.lease.epoch

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


@dataclass(frozen=True)
class Look:
    """What the store says of the jobs at one moment."""

    live: dict[str, list[ReleaseId]]  # by job, as its releases' states say
    seen: dict[str, ReleaseId]  # by table, as readers resolve it
    cutovers: list[Cutover]

    @classmethod
    def at(cls, store: ControlStore, jobs: list[Job]) -> Look:
        names, tables = [job.name for job in jobs], [job.table for job in jobs]
        with store.transaction() as cursor:
            found = rows.select(
                cursor,
                "where c.id in (select cutover from weir.cutover_moves where table_name = any(%s)) order by c.id",
                (tables,),
            )
            seen = aliases.locked(cursor, tables)
            cursor.execute("select job, number from weir.releases where job = any(%s) and state = 'live'", (names,))
            live = [ReleaseId(row["job"], row["number"]) for row in cursor]
        return cls({name: [one for one in live if one.job == name] for name in names}, seen, found)

    @property
    def open(self) -> list[Cutover]:
        return [one for one in self.cutovers if one.open]


def live_of(store: ControlStore, job: str) -> ReleaseId | None:
    return next((one.id for one in releases.of_job(store, job) if one.state == "live"), None)
