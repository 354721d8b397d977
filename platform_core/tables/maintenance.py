"""Keeping a table small on disk: its little files merged, its dead ones removed.

The table's one writer does it, between batches: so it conflicts with no merge, and needs no lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from platform_core.errors import ServiceUnavailable
from platform_core.tables.delta import TableWriter
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
TARGET_BYTES = 32 * 1024 * 1024
KEPT_HOURS = 2  # how long a version can be read by time travel after its files were replaced


class TableMaintenance:
    """At most once every `every` seconds; a failure costs space, not data, and is told and tried again."""

    def __init__(self, output: TableWriter, every: float = 600.0, held: Callable[[], list[int] | None] = list) -> None:
        """`held` names the versions whose files somebody still reads; None: all of them."""
        self._output, self._every, self._held = output, every, held
        self._next = time.monotonic() + every

    def after_batch(self) -> None:
        if time.monotonic() < self._next:
            return
        try:
            merged, removed = self.run()
            event(logger, "table tidied", table=self._output.place, files_merged=merged, files_removed=removed)
        except (DeltaError, ServiceUnavailable) as error:
            event(logger, "table not tidied", level=logging.WARNING, table=self._output.place, error=error)
        self._next = time.monotonic() + self._every

    def run(self) -> tuple[int, int]:
        """How many files were merged into larger ones, and how many dead ones removed."""
        table = self._output.table
        table.update_incremental()
        told = table.optimize.compact(target_size=TARGET_BYTES)
        return int(told["numFilesRemoved"]), len(self._removed(table))

    def _removed(self, table: DeltaTable) -> list[str]:
        """Asked after the merge: who claims a version later finds its files in it."""
        held = self._held()
        if held is None:
            return []
        return table.vacuum(
            retention_hours=KEPT_HOURS, dry_run=False, enforce_retention_duration=False, keep_versions=held or None
        )
