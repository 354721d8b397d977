"""The rows of cutovers, within a caller's transaction. What may be written when, protocol.py says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from platform_core.control import audit
from platform_core.control.position import Position
from platform_core.control.store import Cursor
from platform_core.cutover.model import Cutover, Kind, Move, Phase, phase_of, read_cutover, waits_for
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

_READ: LiteralString = (
    "select c.*, c.deadline_at <= clock_timestamp() as late, (select jsonb_agg(to_jsonb(m) order by m.table_name) "
    "from weir.cutover_moves m where m.cutover = c.id) as moves from weir.cutovers c "
)


def read(cursor: Cursor, cutover: int) -> Cutover:
    found = select(cursor, "where c.id = %s", (cutover,))
    if not found:
        raise UsageError(f"There is no cutover {cutover}.", remedy="`weir history JOB` lists them.")
    return found[0]


def locked(cursor: Cursor, cutover: int) -> Cutover:
    cursor.execute("select from weir.cutovers where id = %s for update", (cutover,))
    return read(cursor, cutover)


def select(cursor: Cursor, where: LiteralString, values: Any) -> list[Cutover]:
    cursor.execute(_READ + where, values)
    return [read_cutover(row) for row in cursor]


def insert(cursor: Cursor, moves: Sequence[Move], kind: Kind, by: str, seconds: float, reason: str) -> Cutover:
    cursor.execute(
        "insert into weir.cutovers (kind, by, reason, why, deadline_at) "
        "values (%s, %s, %s, %s, clock_timestamp() + %s * interval '1 second') returning id",
        (kind, by, reason, waits_for(tuple(moves)), seconds),
    )
    made = int((cursor.fetchone() or {"id": 0})["id"])
    for move in moves:
        cursor.execute(
            "insert into weir.cutover_moves (cutover, table_name, old_job, old_number, new_job, new_number) "
            "values (%s, %s, %s, %s, %s, %s)",
            (made, move.table, move.old.job, move.old.number, move.new.job, move.new.number),
        )
    found = read(cursor, made)
    _note(cursor, found, "requested", by)
    return found


def put_paused(cursor: Cursor, found: Cutover, move: Move, position: Position, epoch: int) -> Cutover:
    cursor.execute(
        "update weir.cutover_moves set held = %s::jsonb, held_epoch = %s where cutover = %s and table_name = %s",
        (position.to_json(), epoch, found.id, move.table),
    )
    return _advance(cursor, found)


def put_aligned(cursor: Cursor, found: Cutover, move: Move, position: Position, version: int, epoch: int) -> Cutover:
    cursor.execute(
        "update weir.cutover_moves set aligned = %s::jsonb, aligned_version = %s, aligned_epoch = %s "
        "where cutover = %s and table_name = %s",
        (position.to_json(), version, epoch, found.id, move.table),
    )
    return _advance(cursor, found)


def put_swapped(cursor: Cursor, found: Cutover, move: Move) -> Cutover:
    cursor.execute(
        "update weir.cutover_moves set swapped = true where cutover = %s and table_name = %s", (found.id, move.table)
    )
    after = read(cursor, found.id)
    return end(cursor, after, "swapped", "") if all(one.swapped for one in after.moves) else after


def put_why(cursor: Cursor, found: Cutover, why: str) -> Cutover:
    if found.why == why:
        return found
    cursor.execute("update weir.cutovers set why = %s where id = %s", (why, found.id))
    return read(cursor, found.id)


def put_flipped(cursor: Cursor, found: Cutover) -> Cutover:
    cursor.execute(
        "update weir.cutovers set phase = 'flipped', why = '', flipped_at = clock_timestamp() where id = %s",
        (found.id,),
    )
    after = read(cursor, found.id)
    _note(cursor, after, "flipped", found.by)
    return after


def end(cursor: Cursor, found: Cutover, phase: Phase, why: str, by: str = "weir") -> Cutover:
    cursor.execute(
        "update weir.cutovers set phase = %s, why = %s, ended_at = clock_timestamp() where id = %s",
        (phase, why, found.id),
    )
    cursor.execute("update weir.cutover_moves set open = false where cutover = %s", (found.id,))
    after = read(cursor, found.id)
    _note(cursor, after, phase, by)
    return after


def newest_batch(cursor: Cursor, release: ReleaseId) -> int:
    cursor.execute(
        "select coalesce(max(batch), -1) as newest from weir.positions where job = %s and number = %s",
        (release.job, release.number),
    )
    return int((cursor.fetchone() or {"newest": -1})["newest"])


def _advance(cursor: Cursor, before: Cutover) -> Cutover:
    """The phase that follows from what the drivers have said; it may go back, as when an old driver began again."""
    moves = read(cursor, before.id).moves
    phase = phase_of(moves)
    cursor.execute(
        "update weir.cutovers set phase = %(phase)s, why = %(why)s, "
        "held_at = case when %(phase)s = 'requested' then null else coalesce(held_at, clock_timestamp()) end, "
        "aligned_at = case when %(phase)s = 'aligned' then coalesce(aligned_at, clock_timestamp()) end "
        "where id = %(id)s",
        {"phase": phase, "why": waits_for(moves), "id": before.id},
    )
    after = read(cursor, before.id)
    if phase != before.phase:
        _note(cursor, after, phase, "weir")
    return after


def _note(cursor: Cursor, found: Cutover, phase: Phase, by: str) -> None:
    """A line for each job, so that its history tells the whole."""
    for move in found.moves:
        detail: dict[str, Any] = {"id": found.id, "table": move.table, "from": str(move.old), "to": str(move.new)}
        detail |= {"phase": phase} | ({"why": found.why} if found.why and phase in ("aborted", "swapped") else {})
        detail |= {"reason": found.reason} if phase == "requested" and found.reason else {}
        audit.write(cursor, by, found.kind, move.new.job, detail)
