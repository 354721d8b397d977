"""A cutover as a value, and the decisions about one: which phase it is in, what it waits for, what forbids the flip."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from platform_core.control.leases import LeaseRow, driver_lease
from platform_core.control.position import Position, same_place
from platform_core.names import ReleaseId

Kind = Literal["cutover", "rollback"]
Phase = Literal["requested", "held", "aligned", "flipped", "swapped", "aborted"]
READY = ("following", "standby")  # states from which a release becomes the live one
BEFORE_FLIP: tuple[Phase, ...] = ("requested", "held", "aligned")


@dataclass(frozen=True)
class Move:
    """One table's part of a cutover: from one release of a job to another."""

    table: str
    old: ReleaseId
    new: ReleaseId
    paused_at: Position | None = None  # O: where `old` has paused, and goes no further
    paused_epoch: int | None = None  # of the lease under which that was told
    aligned: Position | None = None  # `new` at O
    aligned_version: int | None = None  # of its table there
    aligned_epoch: int | None = None
    swapped: bool = False  # `new` goes on as the live release

    @property
    def together(self) -> bool:
        """Whether both are at O."""
        if self.paused_at is None or self.aligned is None:
            return False
        return same_place(self.paused_at.places, self.aligned.places)


@dataclass(frozen=True)
class Cutover:
    id: int
    kind: Kind
    phase: Phase
    by: str
    reason: str
    why: str  # what it waits for, or why it was aborted
    requested_at: datetime
    deadline_at: datetime
    held_at: datetime | None
    aligned_at: datetime | None
    flipped_at: datetime | None
    ended_at: datetime | None
    late: bool  # the deadline has passed, on Postgres's clock
    moves: tuple[Move, ...]

    @property
    def open(self) -> bool:
        return self.ended_at is None

    @property
    def may_abort(self) -> bool:
        return self.phase in BEFORE_FLIP

    def move_of(self, release: ReleaseId) -> Move | None:
        return next((move for move in self.moves if release in (move.old, move.new)), None)

    def pauses(self, release: ReleaseId) -> bool:
        """Whether the release shall pause: the live one of a cutover that has not flipped."""
        return self.may_abort and any(move.old == release for move in self.moves)

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(move.table for move in self.moves)


@dataclass(frozen=True)
class FlipFacts:
    """What the store says right before the flip, all of it locked until the flip's commit."""

    leases: Mapping[str, LeaseRow] = field(default_factory=dict[str, LeaseRow])
    newest: Mapping[ReleaseId, int] = field(default_factory=dict[ReleaseId, int])  # batch of the newest position
    live: Mapping[str, ReleaseId] = field(default_factory=dict[str, ReleaseId])  # by table
    states: Mapping[ReleaseId, str] = field(default_factory=dict[ReleaseId, str])


def phase_of(moves: tuple[Move, ...]) -> Phase:
    """Before the flip the phase follows from what the drivers have said."""
    if any(move.paused_at is None for move in moves):
        return "requested"
    return "aligned" if all(move.together for move in moves) else "held"


def waits_for(moves: tuple[Move, ...]) -> str:
    """In words, for whoever watches."""
    pausing = [str(move.old) for move in moves if move.paused_at is None]
    if pausing:
        return f"waits for {', '.join(pausing)} to pause after its batch"
    aligning = [str(move.new) for move in moves if not move.together]
    return f"waits for {', '.join(aligning)} to reach the same offsets" if aligning else ""


def hindrance(cutover: Cutover, facts: FlipFacts) -> str:
    """Why it may not flip now; empty when it may."""
    if cutover.late:
        return "its deadline has passed"
    return next((why for move in cutover.moves for why in (_hindered(move, facts),) if why), "")


def _hindered(move: Move, facts: FlipFacts) -> str:
    old, new = facts.leases.get(driver_lease(move.old)), facts.leases.get(driver_lease(move.new))
    if facts.live.get(move.table) != move.old or facts.states.get(move.old) not in ("live", "failed"):
        return f"{move.old} is not the live release of {move.table}"
    if facts.states.get(move.new) not in READY:
        return f"{move.new} is {facts.states.get(move.new, 'unknown')}, neither following nor standby"
    if (0 if old is None else old.epoch) != move.paused_epoch:
        return f"another driver of {move.old} has started since it paused"
    if new is None or not new.alive or new.epoch != move.aligned_epoch:
        return f"the driver of {move.new} that reached the offsets has gone"
    if move.paused_at is not None and facts.newest.get(move.old, -1) > move.paused_at.batch:
        return f"{move.old} has committed since it paused"
    return ""


def read_move(row: Mapping[str, Any]) -> Move:
    return Move(
        table=row["table_name"],
        old=ReleaseId(row["old_job"], row["old_number"]),
        new=ReleaseId(row["new_job"], row["new_number"]),
        paused_at=_position(row["held"]),
        paused_epoch=row["held_epoch"],
        aligned=_position(row["aligned"]),
        aligned_version=row["aligned_version"],
        aligned_epoch=row["aligned_epoch"],
        swapped=row["swapped"],
    )


def read_cutover(row: Mapping[str, Any]) -> Cutover:
    known = {name: row[name] for name in Cutover.__dataclass_fields__ if name != "moves"}
    return Cutover(**known, moves=tuple(read_move(move) for move in row["moves"]))


def _position(raw: Any) -> Position | None:
    return None if raw is None else Position.from_json(json.dumps(raw))
