"""Jobs with a live release and a candidate, and the drivers that run them, for tests of cutovers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from platform_core.control import aliases, leases, positions, releases
from platform_core.control.leases import Lease, driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover, Kind, Move
from platform_core.names import ReleaseId
from tests.control.words import created, facts

HOUR = 3600.0


@dataclass
class Running:
    """A release with a driver that lives: it holds the lease."""

    store: ControlStore
    release: ReleaseId
    lease: Lease

    @property
    def version(self) -> int:
        return self.at.batch + 100

    @property
    def at(self) -> Position:
        found = positions.latest(self.store, self.release)
        assert found is not None
        return found[0]

    def commit(self, offset: int) -> Position:
        """A batch that ends at the offset."""
        before = positions.latest(self.store, self.release)
        batch = 0 if before is None else before[0].batch + 1
        position = Position(str(self.release), batch, {"t": {0: offset}})
        positions.record(self.store, self.lease, position, facts(batch), batch + 100)
        return position

    def begin_again(self) -> None:
        """Its driver died, and another one took over."""
        leases.release(self.store, self.lease)
        self.lease = leases.acquire(self.store, self.lease.name, self.lease.owner, HOUR)

    def die(self) -> None:
        leases.release(self.store, self.lease)

    def hold(self, cutover: Cutover) -> Cutover:
        return protocol.tell_paused(self.store, self.lease, cutover.id, self.at)

    def align(self, cutover: Cutover) -> Cutover:
        return protocol.tell_aligned(self.store, self.lease, cutover.id, self.at, self.version)

    def swap(self, cutover: Cutover) -> Cutover:
        return protocol.tell_swapped(self.store, self.lease, cutover.id)

    @property
    def state(self) -> str:
        return releases.get(self.store, self.release).state


def running(store: ControlStore, release: ReleaseId, state: releases.State, owner: Owner | None = None) -> Running:
    created(store, release, state, {"output": {"table": table_of(release), "schema": "", "key": []}})
    return Running(store, release, leases.acquire(store, driver_lease(release), owner or Owner.this_process(), HOUR))


@dataclass
class Pair:
    """A table's live release v1 at offset 10, and its candidate v2 at offset 8."""

    old: Running
    new: Running

    @property
    def table(self) -> str:
        return table_of(self.old.release)

    @property
    def move(self) -> Move:
        return Move(self.table, self.old.release, self.new.release)

    @property
    def back(self) -> Move:
        return Move(self.table, self.new.release, self.old.release)

    @property
    def live(self) -> ReleaseId | None:
        alias = aliases.live(self.old.store, self.table)
        return None if alias is None else alias.release


def table_of(release: ReleaseId) -> str:
    return f"table_of_{release.job}"


def pair(store: ControlStore, release: ReleaseId, owner: Owner | None = None) -> Pair:
    """`owner` runs both; this process, when none is named."""
    candidate = replace(release, number=2)
    made = Pair(running(store, release, "live", owner), running(store, candidate, "following", owner))
    aliases.point(store, made.table, release, None, "a test")
    made.old.commit(10)
    made.new.commit(8)
    return made


def ask(*pairs: Pair, kind: Kind = "cutover", by: str = "ada", seconds: float = HOUR) -> Cutover:
    moves = [one.move if kind == "cutover" else one.back for one in pairs]
    return protocol.request(pairs[0].old.store, moves, kind, by, seconds)


def aligned(*pairs: Pair) -> Cutover:
    """One that is ready to flip."""
    found = ask(*pairs)
    for one in pairs:
        found = one.old.hold(found)
    for one in pairs:
        one.new.commit(10)
        found = one.new.align(found)
    assert found.phase == "aligned"
    return found


def expire(store: ControlStore, cutover: Cutover) -> None:
    """Its deadline has passed."""
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.cutovers set deadline_at = clock_timestamp() - interval '1 ms' where id = %s", (cutover.id,)
        )
