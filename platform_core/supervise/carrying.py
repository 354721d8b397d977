"""The supervisor's part in cutovers: each round it carries them on, and writes moved aliases to the warehouse's log."""

from __future__ import annotations

import logging

from platform_core.control import leases
from platform_core.control.leases import elapsed
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.release import alias_log, carrying
from platform_core.settings import Settings
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
QUICK_SECONDS = 0.2  # a round, while tables stand still
_LOG_AGAIN_SECONDS = 30.0


class Carrier:
    def __init__(self, settings: Settings, store: ControlStore, standing: carrying.Standing | None = None) -> None:
        self._settings, self._store = settings, store
        self._standing = standing or carrying.standing_of(settings)
        self._log_after = 0.0
        self.busy = False

    def round(self) -> frozenset[ReleaseId]:
        """The releases that nobody shall start now."""
        now = [one for one in carrying.carry(self._store, self._standing) if one.open]
        self.busy = bool(now)
        self._log()
        if not now:
            return frozenset()
        with self._store.transaction() as cursor:
            return carrying.withheld(now, leases.among(cursor, "driver/"))

    def _log(self) -> None:
        """A warehouse that cannot be written delays the log; no cutover waits for it."""
        if elapsed() < self._log_after:
            return
        try:
            lines = alias_log.append(self._settings, self._store)
        except (OSError, ValueError) as error:
            self._log_after = elapsed() + _LOG_AGAIN_SECONDS
            event(logger, "alias log not written", level=logging.WARNING, place=self._settings.alias_log, error=error)
            return
        if lines:
            event(logger, "alias log written", lines=lines)
