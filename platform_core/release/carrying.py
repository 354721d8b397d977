"""Carries open cutovers on, a little each round.

Two may do it at once, and any may die in the middle: every step is one transaction that looks again, and the next
round does what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from deltalake.exceptions import DeltaError

from platform_core.control import cutovers, leases
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.leases import LeaseRow, driver_lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import BatchFailed, LeaseHeld, PositionError, ServiceUnavailable, Superseded, WeirError
from platform_core.names import ReleaseId
from platform_core.read.tables import LiveTable
from platform_core.settings import Settings
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
Standing = Callable[[ReleaseId], tuple[Position, int] | None]  # with the table's version


def standing_of(settings: Settings) -> Standing:
    """Where a release's table stands. The store may not know it: a driver that dies after the commit of a batch has
    not recorded it, and a cutover at the recorded position would let readers step back."""

    def standing(release: ReleaseId) -> tuple[Position, int] | None:
        table = LiveTable(str(release), settings.table_uri(release), release)
        position = table.position()
        return None if position is None else (position, table.version)

    return standing


def carry(store: ControlStore, standing: Standing) -> list[Cutover]:
    """One round over all that are open; they are returned as they are now."""
    return [_carried(store, found, standing) for found in cutovers.all_open(store)]


def _carried(store: ControlStore, found: Cutover, standing: Standing) -> Cutover:
    try:
        return step(store, found, standing)
    except (ServiceUnavailable, Superseded):
        raise
    except WeirError as error:
        if found.why != error.what:  # rounds are quick: told once, not in each
            event(logger, "cutover not carried on", level=logging.WARNING, cutover=found.id, error=error)
        return cutovers.explain(store, found.id, error.what)


def step(store: ControlStore, found: Cutover, standing: Standing) -> Cutover:
    """Whatever can be done about this one now."""
    before = found.phase
    if found.may_abort and found.late:
        found = cutovers.abort_late(store, found.id)
    for move in found.moves if found.may_abort else ():
        found = _speak_for_the_dead(store, found, move, standing)
    if found.phase == "aligned":
        found = cutovers.flip(store, found.id)
    if found.phase != before:
        event(logger, "cutover moved", cutover=found.id, kind=found.kind, phase=found.phase, why=found.why)
    return found


def withheld(open_ones: list[Cutover], held: dict[str, LeaseRow]) -> frozenset[ReleaseId]:
    """Releases that nobody shall start now: they stand still without a driver, and one that begins would have to be
    waited for."""
    still = [move for one in open_ones if one.may_abort for move in one.moves if move.held is not None]
    return frozenset(move.old for move in still if _dead(held.get(driver_lease(move.old))))


def _speak_for_the_dead(store: ControlStore, found: Cutover, move: Move, standing: Standing) -> Cutover:
    """The fence first, then the look at the table: what was fenced commits nothing in between."""
    name = driver_lease(move.old)
    lease = leases.current(store, name)
    if not _dead(lease) or (move.held is not None and move.held_epoch == _epoch(lease)):
        return found
    try:
        with store.transaction() as cursor:
            epoch = leases.fence(cursor, name)
    except LeaseHeld:  # a driver has begun since
        return found
    position, version = _read(standing, move.old)
    event(logger, "held for a dead driver", cutover=found.id, release=move.old, batch=position.batch, epoch=epoch)
    return cutovers.hold_for(store, found.id, move.old, epoch, position, version)


def _read(standing: Standing, release: ReleaseId) -> tuple[Position, int]:
    try:
        stands = standing(release)
    except (WeirError, DeltaError, OSError) as error:
        raise BatchFailed(f"The table of {release} cannot be read: {error}.", remedy="It is tried again.") from error
    if stands is None:
        raise PositionError(
            f"{release} has no driver, and its table holds no batch to cut over from.",
            remedy=f"Start it with `weir start {release}`.",
        )
    return stands


def _dead(lease: LeaseRow | None) -> bool:
    """Nobody holds the lease, or its holder is proven to have ended."""
    return lease is None or not lease.alive or lease.owner.gone


def _epoch(lease: LeaseRow | None) -> int:
    return 0 if lease is None else lease.epoch
