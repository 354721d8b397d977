"""What a batch did: the numbers that every driver reports. telemetry.METRICS says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class BatchFacts:
    at: datetime  # when it was committed; with a time zone
    batch: int
    records_in: int
    rows_out: int
    used: int = 0  # of records_in, those that reached the transform in time
    late: int = 0
    rejected: int = 0
    filtered: int = 0
    batch_seconds: float = 0.0
    lag: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, dict[int, int]])  # records not yet read
    watermark_ms: int = 0
    newest_event_ms: int | None = None
    freshness_seconds: float | None = None
    records_per_second: float = 0.0

    @property
    def total_lag(self) -> int:
        return sum(records for partitions in self.lag.values() for records in partitions.values())
