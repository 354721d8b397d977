"""One batch of a release, from its plan to its commits: one value, that each step returns with what it has added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from platform_core.control.position import Position
from platform_core.streaming.batch.metrics import BatchMetrics, Dropped
from platform_core.streaming.source.parsing import RECENT_MS


@dataclass(frozen=True, kw_only=True)
class Batch:
    # planned
    position: Position  # where it ends
    planned_at_ms: int = 0
    late_before_ms: int = 0  # the watermark by which its records are late
    # computed
    measures: BatchMetrics = field(default_factory=BatchMetrics)
    changes: pa.Table = field(default_factory=lambda: pa.table({}))  # rows; tables/changes.py says what each one does
    lookups: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])  # the records of each lookup
    # committed
    repeated: bool = False  # the table had it already
    table_version: int = -1
    readable_at: float = 0.0
    published: int = 0
    late: int = 0

    @property
    def number(self) -> int:
        return self.position.batch

    @property
    def metadata(self) -> str:
        """What each commit carries."""
        return self.position.to_json()

    def dropped(self, delay_ms: int, rows_dropped: Callable[[], Dropped], recount: Callable[[int], int]) -> int:
        """How many events Spark dropped as behind the watermark, which stays `delay_ms` behind the newest event.
        An event at the watermark itself is dropped, but no window that holds it.

        Spark's own count is of rows in its state operators. Of an aggregation they are partial results, one a window
        and key; there, all events behind the watermark count, if they missed all of their windows or some. None count
        in a batch in which every window was open still.
        """
        found, watermark = self.measures, self.late_before_ms
        if found.oldest_ms is None or found.oldest_ms > watermark:
            return 0  # almost every batch: nothing has to be asked
        rows = rows_dropped()
        if not rows.rows:
            return 0
        newest = self.planned_at_ms - delay_ms
        last = watermark - (1 if rows.partial else 0)
        if newest - RECENT_MS < watermark <= newest:
            behind = found.ancient + sum(event <= last for event in found.behind_ms)
        else:
            behind = recount(last)  # the list of those behind does not reach it
        return behind if rows.partial else min(behind, rows.rows)
