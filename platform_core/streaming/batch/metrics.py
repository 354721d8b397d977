"""What a batch observed of its inputs while it ran, as one value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from platform_core.declare import StreamingJob
from platform_core.streaming.sink.rejects import Reject
from platform_core.streaming.source.parsing import INPUT, admitted, parsed_at_rest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DROPPED = "numRowsDroppedByWatermark"


@dataclass(frozen=True)
class Dropped:
    """Rows that the batch's state operators dropped; `partial`: of an aggregation, where events are merged already."""

    rows: int = 0
    partial: bool = False


@dataclass(frozen=True)
class BatchMetrics:
    """Counts are of the batch; `behind_ms` and `ancient` say which events may be behind the watermark."""

    records: int = 0
    used: int = 0
    late: int = 0
    oldest_ms: int | None = None
    newest_ms: int = 0
    newest_record_ms: int = 0
    rejects: list[Reject] = field(default_factory=list[Reject])
    behind_ms: list[int] = field(default_factory=list[int])
    ancient: int = 0


def observed_by(query: Any) -> dict[str, dict[str, Any]]:
    """The metrics of the batch that the query is in, by name.

    The public way, a listener, tells them after the batch is committed; rejects have to be written before. The plan
    that runs now has them as soon as its action has ended.
    """
    return observed_in(query._jsq.streamingQuery().lastExecution())


def observed_in(execution: Any) -> dict[str, dict[str, Any]]:
    """The metrics of a plan that has run, by name."""
    found: dict[str, dict[str, Any]] = {}
    entries = execution.observedMetrics().iterator()
    while entries.hasNext():
        entry = entries.next()
        found[entry._1()] = json.loads(entry._2().json())
    return found


def dropped_by(query: Any) -> Dropped:
    """What the state operators of the batch that the query is in have dropped."""
    rows, partial = 0, False
    nodes = [query._jsq.streamingQuery().lastExecution().executedPlan()]
    while nodes:
        node = nodes.pop()
        children = node.children()
        nodes += [children.apply(place) for place in range(children.size())]
        metric = node.metrics().get(_DROPPED)
        if metric.isDefined() and metric.get().value() > 0:
            rows += metric.get().value()
            partial = partial or "StateStoreSave" in node.nodeName()
    return Dropped(rows, partial)


def measured(job: StreamingJob, metrics: Mapping[str, Mapping[str, Any]]) -> BatchMetrics:
    """All inputs together. A lookup's records count as used: nothing downstream of it drops any."""
    parts = {name: metrics.get(INPUT + name, {}) for name in job.inputs}
    streams = [parts[name] for name in job.transformed]
    used = _total(streams, "used")
    looked_up = sum(parts[name].get("records", 0) - len(parts[name].get("rejects", ())) for name in job.lookups)
    oldest = [part["oldest_ms"] for part in streams if part.get("oldest_ms") is not None]
    return BatchMetrics(
        records=_total(parts.values(), "records"),
        used=used + looked_up,
        late=_total(streams, "late"),
        oldest_ms=min(oldest, default=None),
        newest_ms=max((part.get("newest_ms") or 0 for part in parts.values()), default=0),
        newest_record_ms=max((part.get("newest_record_ms") or 0 for part in streams), default=0),
        rejects=_once(Reject.from_metric(raw) for part in parts.values() for raw in part.get("rejects", ())),
        behind_ms=[event for part in streams for event in part.get("behind_ms", ())],
        ancient=_total(streams, "ancient"),
    )


def behind(records: DataFrame, job: StreamingJob, last_ms: int) -> int:
    """How many events of a batch, read again, are not after a moment."""
    from pyspark.sql import functions as F

    parts = [part for part in job.streams.values() if part.late_after is not None]
    ours = [admitted(parsed_at_rest(records, part), part) for part in parts]
    return sum(events.where(F.unix_millis("event_time") <= last_ms).count() for events in ours)


def _total(parts: Any, name: str) -> int:
    return sum(part.get(name) or 0 for part in parts)


def _once(rejects: Any) -> list[Reject]:
    """A topic that two inputs read rejects a record once."""
    return list({(reject.topic, reject.partition, reject.offset): reject for reject in rejects}.values())
