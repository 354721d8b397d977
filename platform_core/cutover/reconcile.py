"""The supervisor's half: each round it carries open cutovers on, a little, from wherever their rows say that they are.

Two may do it at once, and any may die in the middle: every step is one transaction that looks again, and the next
round does what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from deltalake.exceptions import DeltaError

from platform_core.control import leases
from platform_core.control.leases import LeaseRow, driver_lease, elapsed
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import alias_log, protocol
from platform_core.cutover.model import Cutover, Move
from platform_core.errors import BatchFailed, LeaseHeld, PositionError, ServiceUnavailable, Superseded, WeirError
from platform_core.names import ReleaseId
from platform_core.read.tables import LiveTable
from platform_core.settings import Settings
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
QUICK_SECONDS = 0.2  # a round, while tables are paused
_LOG_AGAIN_SECONDS = 30.0
TableAt = Callable[[ReleaseId], tuple[Position, int] | None]  # a release's newest commit, and the table's version


class Reconciler:
    def __init__(self, settings: Settings, store: ControlStore) -> None:
        self._settings, self._store = settings, store
        self._table_at = newest_commit(settings)
        self._log_after = 0.0
        self.busy = False

    def round(self) -> frozenset[ReleaseId]:
        """The releases that nobody shall start now."""
        now = [one for one in reconcile(self._store, self._table_at) if one.open]
        self.busy = bool(now)
        self._log()
        if not now:
            return frozenset()
        with self._store.transaction() as cursor:
            return not_to_start(now, leases.among(cursor, "driver/"))

    def _log(self) -> None:
        """A warehouse that cannot be written delays the log; no cutover waits for it."""
        if elapsed() < self._log_after:
            return
        try:
            lines = alias_log.append(self._settings, self._store)
        except (OSError, ValueError) as error:
            self._log_after = elapsed() + _LOG_AGAIN_SECONDS
            place = self._settings.storage.alias_log
            event(logger, "alias log not written", level=logging.WARNING, place=place, error=error)
            return
        if lines:
            event(logger, "alias log written", lines=lines)


def newest_commit(settings: Settings) -> TableAt:
    """From the table, as the store may not know it: a driver that dies after the commit of a batch has not recorded
    it, and a cutover at the recorded position would let readers step back."""

    def table_at(release: ReleaseId) -> tuple[Position, int] | None:
        table = LiveTable(str(release), settings.storage.table(release), release)
        position = table.position()
        return None if position is None else (position, table.version)

    return table_at


def reconcile(store: ControlStore, table_at: TableAt) -> list[Cutover]:
    """One round over all that are open; they are returned as they are now."""
    return [_reconciled(store, found, table_at) for found in protocol.all_open(store)]


def _reconciled(store: ControlStore, found: Cutover, table_at: TableAt) -> Cutover:
    try:
        return step(store, found, table_at)
    except (ServiceUnavailable, Superseded):
        raise
    except WeirError as error:
        if found.why != error.what:  # rounds are quick: told once, not in each
            event(logger, "cutover does not go on", level=logging.WARNING, cutover=found.id, error=error)
        return protocol.explain(store, found.id, error.what)


def step(store: ControlStore, found: Cutover, table_at: TableAt) -> Cutover:
    """Whatever can be done about this one now."""
    before = found.phase
    if found.may_abort and found.late:
        found = protocol.abort_late(store, found.id)
    for move in found.moves if found.may_abort else ():
        found = _pause_dead(store, found, move, table_at)  # step 2
    if found.phase == "aligned":
        found = protocol.flip(store, found.id)  # step 4
    if found.phase != before:
        event(logger, "cutover moved", cutover=found.id, kind=found.kind, phase=found.phase, why=found.why)
    return found


def not_to_start(open_ones: list[Cutover], held: dict[str, LeaseRow]) -> frozenset[ReleaseId]:
    """Releases that are paused without a driver: one that started would have to be waited for."""
    paused = [move for one in open_ones if one.may_abort for move in one.moves if move.paused_at is not None]
    return frozenset(move.old for move in paused if _dead(held.get(driver_lease(move.old))))


def _pause_dead(store: ControlStore, found: Cutover, move: Move, table_at: TableAt) -> Cutover:
    """The fence first, then the look at the table: what was fenced commits nothing in between."""
    name = driver_lease(move.old)
    lease = leases.current(store, name)
    epoch = 0 if lease is None else lease.epoch
    if not _dead(lease) or (move.paused_at is not None and move.paused_epoch == epoch):
        return found
    try:
        with store.transaction() as cursor:
            epoch = leases.fence(cursor, name)
    except LeaseHeld:  # a driver has started since
        return found
    position, version = _read(table_at, move.old)
    event(logger, "paused for a dead driver", cutover=found.id, release=move.old, batch=position.batch, epoch=epoch)
    return protocol.pause_dead(store, found.id, move.old, epoch, position, version)


def _read(table_at: TableAt, release: ReleaseId) -> tuple[Position, int]:
    try:
        found = table_at(release)
    except (WeirError, DeltaError, OSError) as error:
        raise BatchFailed(f"The table of {release} cannot be read: {error}.", remedy="It is tried again.") from error
    if found is None:
        raise PositionError(
            f"{release} has no driver, and its table holds no batch to cut over from.",
            remedy=f"Start it with `weir start {release}`.",
        )
    return found


def _dead(lease: LeaseRow | None) -> bool:
    """Nobody holds the lease, or its holder is proven to have ended."""
    return lease is None or not lease.alive or lease.owner.gone
