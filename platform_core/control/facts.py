"""The metrics of a batch: the one catalogue of what each says, what to do about it, and where it comes from.

A further metric is a field here. The control store then has a column for it, and the sum over all batches of one that
is counted; drivers report it, and Dagster plots it where it says so. infra/runbooks/metrics.md shows the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, Literal


@dataclass(frozen=True)
class Metric:
    """`of` gives its value for a batch, as `Done` in streaming/driver/reports.py has it. One that is counted adds up
    over batches; of any other the newest batch's value counts. Under `plotted` a table's page in Dagster has it, of the
    last minute."""

    unit: str
    meaning: str
    do: str
    of: Callable[[Any], Any]
    counted: bool
    plotted: str
    kind: Literal["bigint", "double precision", "jsonb"]


def _metric(
    unit: str,
    meaning: str,
    *,
    do: str,
    of: Callable[[Any], Any],
    counted: bool = False,
    plotted: str = "",
    kind: Literal["bigint", "double precision", "jsonb"] = "bigint",
    **default: Any,
) -> Any:
    return field(**default, metadata={"metric": Metric(unit, meaning, do, of, counted, plotted, kind)})


@dataclass(frozen=True)
class BatchFacts:
    at: datetime  # when it was committed; with a time zone
    batch: int
    records_in: int = _metric(
        "records",
        "records that the topics delivered to the batch",
        do="None for long while the topics get records: the driver is stuck, see nothing-moves.md.",
        of=lambda done: done.batch.measures.records,
        counted=True,
    )
    rows_out: int = _metric(
        "rows",
        "rows that the batch wrote to its table",
        do="None while records come: see whether they are late, rejected, or left out by the transform.",
        of=lambda done: done.batch.changes.num_rows,
        counted=True,
        plotted="rows_written",
    )
    used: int = _metric(
        "records",
        "records that reached the transform in time",
        do="With late, rejected and filtered they make up records_in. Else the check `accounted` is red: stop the job, "
        "keep its log.",
        of=lambda done: done.batch.measures.used - (done.batch.late - done.batch.measures.late),
        counted=True,
        default=0,
    )
    late: int = _metric(
        "records",
        "records dropped because they came later than their input's lateness",
        do="It grows: find the producer that lags, or raise the input's `lateness` and release again.",
        of=lambda done: done.batch.late,
        counted=True,
        plotted="late",
        default=0,
    )
    rejected: int = _metric(
        "records",
        "records kept aside in the job's rejects",
        do='It grows: `weir sql "select reason, count(*) from JOB_rejects group by 1"`, then correct the producer.',
        of=lambda done: len(done.batch.measures.rejects),
        counted=True,
        plotted="rejected",
        default=0,
    )
    filtered: int = _metric(
        "records",
        "records that the platform left out on purpose",
        do="Nothing.",
        of=lambda _: 0,
        counted=True,
        default=0,
    )
    batch_seconds: float = _metric(
        "seconds",
        "time from the batch's plan to its commit",
        do="Longer than `updates_every`: the promise is broken. Give the machine to fewer jobs, or promise less.",
        of=lambda done: done.seconds,
        plotted="batch_seconds",
        kind="double precision",
        default=0.0,
    )
    lag: Mapping[str, Mapping[int, int]] = _metric(
        "records",
        "records that the topics hold beyond the batch's end, per partition",
        do="It grows: the job is slower than its producers. After an outage wait; else give the driver more.",
        of=lambda done: done.lag,
        plotted="lag",
        kind="jsonb",
        default_factory=dict[str, dict[int, int]],
    )
    watermark_ms: int = _metric(
        "milliseconds",
        "event time before which windows are closed",
        do="It stands still while records come: all of them are older than the newest event, see newest_event_ms.",
        of=lambda done: done.batch.position.watermark_ms,
        default=0,
    )
    newest_event_ms: int | None = _metric(
        "milliseconds",
        "the newest event time seen",
        do="It is ahead of now: a producer's clock is. The input's `future` bounds by how much.",
        of=lambda done: done.batch.position.newest_ms or None,
        default=None,
    )
    freshness_seconds: float | None = _metric(
        "seconds",
        "from the timestamp of the batch's newest record to readable in the table",
        do="More than `updates_every`: look at batch_seconds and lag; with neither, producers stamp records too early.",
        of=lambda done: done.freshness,
        plotted="freshness_seconds",
        kind="double precision",
        default=None,
    )
    records_per_second: float = _metric(
        "records/s",
        "records that the batch worked off per second",
        do="Less than the producers send: the lag grows.",
        of=lambda done: done.batch.measures.records / done.seconds,
        plotted="rows_per_second",
        kind="double precision",
        default=0.0,
    )

    @property
    def total_lag(self) -> int:
        return sum(records for partitions in self.lag.values() for records in partitions.values())

    @property
    def unaccounted(self) -> int:
        return self.records_in - self.used - self.late - self.rejected - self.filtered


@cache
def metrics_of(kind: type[BatchFacts]) -> Mapping[str, Metric]:
    return {one.name: one.metadata["metric"] for one in fields(kind) if "metric" in one.metadata}


METRICS = metrics_of(BatchFacts)


def known(kind: type[BatchFacts], row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row of the store says; a metric that its driver did not report yet has its default."""
    needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    return {one.name: row[one.name] for one in fields(kind) if row[one.name] is not None or one.name in needed}
