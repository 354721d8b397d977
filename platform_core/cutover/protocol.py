"""What each party of a cutover writes into its row, and when it may: each function is one transaction.

An OLD driver tells that it is paused when its last batch is committed and recorded, and its gate lets none begin. It
stays paused, also while the store is away, until `of_release` no longer names it as the `old` of a cutover before its
flip; its release's state says what it is then: live (aborted: it goes on) or standby. That may also be answered by the
next cutover, a rollback in which it is the new one: it need not see the first end.

A driver that starts takes its lease, then reads its release's state, then `of_release`, all before its first batch: a
newer epoch forbids the flip until that driver has told. Each tell may be repeated, also after a commit whose answer
was lost, also by a new driver under its new lease; it returns the cutover as it now is. An old driver that started
again elsewhere moves `paused_at`, and the new one aligns again. Superseded: the lease is gone.

Whoever finds the cutover `late` before its flip may call abort_late: with every supervisor gone, the live release would
be paused for ever.

Rows are locked in one order: leases by name, the cutover, aliases by table, releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

import psycopg

from platform_core.control import aliases, leases, positions, releases
from platform_core.control.leases import Lease, LeaseRow, driver_lease
from platform_core.control.position import Position, same_place, told
from platform_core.control.store import ControlStore, Cursor
from platform_core.cutover import store as rows
from platform_core.cutover.model import READY, Cutover, FlipFacts, Kind, Move, hindrance
from platform_core.errors import PositionError, UsageError
from platform_core.names import ReleaseId

_TAKES_PART: LiteralString = (
    "where c.id in (select m.cutover from weir.cutover_moves m where m.open and ((m.old_job = %(job)s and "
    "m.old_number = %(number)s) or (m.new_job = %(job)s and m.new_number = %(number)s)))"
)


def request(
    store: ControlStore, moves: Sequence[Move], kind: Kind, by: str, seconds: float, reason: str = ""
) -> Cutover:
    """Opens one. UsageError while one of its tables is in another: of two at once, one wins.

    A rollback also ends a cutover that has flipped and whose new release does not come to go on.
    """
    ordered = sorted(moves, key=lambda move: move.table)
    try:
        with store.transaction() as cursor:
            if kind == "rollback":
                _end_flipped(cursor, ordered, by)
            _refuse_changed(cursor, ordered)
            return rows.insert(cursor, ordered, kind, by, seconds, reason)
    except psycopg.errors.UniqueViolation as error:
        raise _taken(store, ordered) from error


def of_release(store: ControlStore, release: ReleaseId) -> Cutover | None:
    """The open one that the release takes part in; one cheap query, which drivers ask each second."""
    with store.transaction() as cursor:
        found = rows.select(cursor, _TAKES_PART, {"job": release.job, "number": release.number})
    return found[0] if found else None


def get(store: ControlStore, cutover: int) -> Cutover:
    with store.transaction() as cursor:
        return rows.read(cursor, cutover)


def all_open(store: ControlStore) -> list[Cutover]:
    """The oldest first."""
    with store.transaction() as cursor:
        return open_in(cursor)


def open_in(cursor: Cursor) -> list[Cutover]:
    """`all_open` within the caller's transaction."""
    return rows.select(cursor, "where c.ended_at is null order by c.id", ())


def of_table(store: ControlStore, table: str, limit: int = 100) -> list[Cutover]:
    """Also those that ended; the newest first."""
    with store.transaction() as cursor:
        return rows.select(
            cursor,
            "where c.id in (select cutover from weir.cutover_moves where table_name = %s) order by c.id desc limit %s",
            (table, limit),
        )


def tell_paused(store: ControlStore, lease: Lease, cutover: int, position: Position) -> Cutover:
    """Step 2, by the OLD release's driver: it is at `position`, which it has recorded, and begins no batch."""
    with store.transaction() as cursor:
        leases.check(cursor, lease)
        found = rows.locked(cursor, cutover)
        return _pause(cursor, found, _mine(found, lease, "old"), position, lease.epoch)


def pause_dead(
    store: ControlStore, cutover: int, release: ReleaseId, epoch: int, position: Position, version: int
) -> Cutover:
    """`tell_paused` for a driver that is dead: `epoch` came from `leases.fence`, `position` was read after that, from
    the table itself, at `version`; what was not recorded of it is recorded now. Changes nothing when a driver has
    started since: that one tells itself."""
    name = driver_lease(release)
    with store.transaction() as cursor:
        lease = leases.lock(cursor, [name]).get(name)
        found = rows.locked(cursor, cutover)
        move = next((move for move in found.moves if move.old == release), None)
        if move is None or (0 if lease is None else lease.epoch) != epoch:
            return found
        if found.may_abort:
            positions.add(cursor, release, position, version)
        return _pause(cursor, found, move, position, epoch)


def tell_aligned(store: ControlStore, lease: Lease, cutover: int, position: Position, version: int) -> Cutover:
    """Step 3, by the NEW release's driver: its table is at `version`, its newest commit at O."""
    with store.transaction() as cursor:
        leases.check(cursor, lease)
        found = rows.locked(cursor, cutover)
        move = _mine(found, lease, "new")
        if not found.may_abort:
            return found
        at = move.paused_at
        if at is None or not same_place(at.places, position.places):
            where = f"{move.old} has not paused yet" if at is None else f"{move.old} is paused at {told(at.places)}"
            raise PositionError(
                f"Cutover {cutover}: {move.new} tells of {told(position.places)}; {where}.",
                remedy="Step to where it is paused now, then tell again.",
            )
        return rows.put_aligned(cursor, found, move, position, version, lease.epoch)


def flip(store: ControlStore, cutover: int) -> Cutover:
    """Step 4: all aliases and states in one transaction, or nothing: the phase tells which, `why` what forbade it."""
    with store.transaction() as cursor:
        named = [one for move in rows.read(cursor, cutover).moves for one in (move.old, move.new)]
        held = leases.lock(cursor, [driver_lease(release) for release in named])
        found = rows.locked(cursor, cutover)
        if found.phase != "aligned":
            return found
        why = hindrance(found, _facts(cursor, found, held))
        return rows.put_why(cursor, found, why) if why else _flip(cursor, found)


def tell_swapped(store: ControlStore, lease: Lease, cutover: int) -> Cutover:
    """Step 5, by the NEW release's driver, live now: its batches go on."""
    with store.transaction() as cursor:
        leases.check(cursor, lease)
        found = rows.locked(cursor, cutover)
        move = _mine(found, lease, "new")
        return rows.put_swapped(cursor, found, move) if found.phase == "flipped" else found


def abort(store: ControlStore, cutover: int, reason: str, by: str = "weir") -> Cutover:
    """Before the flip alone: the live releases go on as if nothing had been. Later it changes nothing."""
    with store.transaction() as cursor:
        found = rows.locked(cursor, cutover)
        return rows.end(cursor, found, "aborted", reason, by) if found.may_abort else found


def abort_late(store: ControlStore, cutover: int) -> Cutover:
    """`abort`, when the deadline has passed; says what it waited for in vain."""
    with store.transaction() as cursor:
        found = rows.locked(cursor, cutover)
        if not (found.may_abort and found.late):
            return found
        given = (found.deadline_at - found.requested_at).total_seconds()
        waited = found.why or "waits for the supervisor"
        return rows.end(cursor, found, "aborted", f"after {given:.0f} s it still {waited}")


def explain(store: ControlStore, cutover: int, why: str) -> Cutover:
    """For whoever watches: what keeps it from going on."""
    with store.transaction() as cursor:
        found = rows.locked(cursor, cutover)
        return rows.put_why(cursor, found, why) if found.open else found


def _end_flipped(cursor: Cursor, moves: Sequence[Move], by: str) -> None:
    tables = [move.table for move in moves]
    cursor.execute(
        "select c.id from weir.cutovers c where c.phase = 'flipped' and c.ended_at is null and exists (select from "
        "weir.cutover_moves m where m.cutover = c.id and m.table_name = any(%s)) order by c.id for update",
        (tables,),
    )
    for row in cursor.fetchall():
        found = rows.read(cursor, row["id"])
        waiting = ", ".join(str(move.new) for move in found.moves if not move.swapped)
        rows.end(cursor, found, "swapped", f"rolled back before {waiting} had gone on", by)


def _refuse_changed(cursor: Cursor, moves: Sequence[Move]) -> None:
    """What was decided upon must still be so."""
    live = aliases.locked(cursor, [move.table for move in moves])
    for move in moves:
        if live.get(move.table) != move.old:
            raise UsageError(
                f"Table {move.table!r}: its live release is {live.get(move.table, 'none')}, not {move.old}.",
                remedy="Look at `weir status`, then ask again.",
            )
    for release, state in releases.locked_states(cursor, [move.new for move in moves]).items():
        if state not in READY:
            raise UsageError(f"{release} is {state}, neither {' nor '.join(READY)}.", remedy="See `weir status`.")


def _taken(store: ControlStore, moves: Sequence[Move]) -> UsageError:
    wanted = {move.table for move in moves}
    for other in all_open(store):
        if wanted & set(other.tables):
            return UsageError(
                f"{other.by} asked for {other.kind} {other.id} of {', '.join(other.tables)} at "
                f"{other.requested_at:%H:%M:%S} UTC; it is {other.phase}.",
                remedy="Wait for it, or ask again after it has ended.",
            )
    return UsageError("Another cutover of these tables was open a moment ago.", remedy="Ask again.")


def _pause(cursor: Cursor, found: Cutover, move: Move, position: Position, epoch: int) -> Cutover:
    if not found.may_abort or (move.paused_at == position and move.paused_epoch == epoch):
        return found
    newest = rows.newest_batch(cursor, move.old)
    if newest > position.batch:
        raise PositionError(
            f"Cutover {found.id}: {move.old} tells of batch {position.batch}, and has recorded batch {newest}.",
            remedy="Tell the newest position, after the last batch was recorded.",
        )
    return rows.put_paused(cursor, found, move, position, epoch)


def _facts(cursor: Cursor, found: Cutover, held: dict[str, LeaseRow]) -> FlipFacts:
    live = aliases.locked(cursor, found.tables)
    states = releases.locked_states(cursor, [release for move in found.moves for release in (move.old, move.new)])
    newest = {move.old: rows.newest_batch(cursor, move.old) for move in found.moves}
    return FlipFacts(leases=held, newest=newest, live=live, states=states)


def _flip(cursor: Cursor, found: Cutover) -> Cutover:
    said = f"{found.kind} {found.id}"
    for move in found.moves:
        aliases.move(cursor, move.table, move.new, move.aligned, found.by)
        releases.change(cursor, move.old, "standby", said, by=found.by)
        releases.change(cursor, move.new, "live", said, by=found.by)
    return rows.put_flipped(cursor, found)


def _mine(found: Cutover, lease: Lease, side: str) -> Move:
    for move in found.moves:
        if lease.name == driver_lease(move.old if side == "old" else move.new):
            return move
    raise UsageError(
        f"Cutover {found.id} has no {side} release that {lease.name} speaks for.",
        remedy="Ask of_release for the cutover that the release takes part in.",
    )
