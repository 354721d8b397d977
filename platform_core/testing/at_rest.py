"""A script's records as one batch: the transform over all of them at rest, and the lookups as of each row's time.

Written apart from the stream's joins, in plain Python, so that each is a check of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from platform_core.declare import Lookup, StreamingJob
from platform_core.streaming.source.parsing import parsed_at_rest
from platform_core.streaming.transform.query_plan import computed
from platform_core.testing.result import Refused, Result, Row, in_order, refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def performed_at_rest(job: StreamingJob, records: DataFrame) -> Result:
    """Nothing is late here by a watermark: a batch has none. What its own timestamp calls late is."""
    rows = _collected(computed(job, records))
    for lookup in job.lookups.values():
        versions = _versions(records, lookup)
        rows = [joined for row in rows if (joined := _joined(row, lookup, versions)) is not None]
    rejects, late = _set_aside(job, records)
    return Result(rows=in_order(_newest_a_key(rows, job), job), rejects=rejects, late=late)


def _versions(records: DataFrame, lookup: Lookup) -> dict[str, list[tuple[Any, int, Row | None]]]:
    """Each key's versions in the order of time: when, which offset, and the values; None for a deletion."""
    found: dict[str, list[tuple[Any, int, Row | None]]] = {}
    kept = parsed_at_rest(records, lookup).where("reason IS NULL").select("key", "event_time", "offset", "value", "v")
    for row in _collected(kept):
        dated = {} if lookup.dated is None else {lookup.dated: row["event_time"]}
        values = None if row["value"] is None else {name: row["v"][name] for name in lookup.takes} | dated
        found.setdefault(bytes(row["key"]).decode(), []).append((row["event_time"], row["offset"], values))
    return {key: sorted(versions, key=lambda version: version[:2]) for key, versions in found.items()}


def _joined(row: Row, lookup: Lookup, versions: dict[str, list[tuple[Any, int, Row | None]]]) -> Row | None:
    own = [] if row[lookup.on] is None else versions.get(str(row[lookup.on]), [])  # a null equals nothing
    known = [values for when, _, values in own if when <= row[lookup.at]]
    taken = known[-1] if known else None
    if taken is None and lookup.required:
        return None
    if taken is None:
        return {**row, **dict.fromkeys(lookup.fills), **lookup.otherwise}
    return {**row, **taken}


def _newest_a_key(rows: Iterable[Row], job: StreamingJob) -> list[Row]:
    """Of several rows of a key the one with the newest record counts, where the transform kept `record`."""
    declared = {column.name for column in job.output.columns}
    found = list(rows)
    if not job.output.keyed or "record" in declared or not all("record" in row for row in found):
        return found
    by_age = sorted(found, key=lambda row: [row["record"][name] for name in ("timestamp", "partition", "offset")])
    return list({tuple(row[name] for name in job.output.key): row for row in by_age}.values())


def _set_aside(job: StreamingJob, records: DataFrame) -> tuple[list[Refused], int]:
    rejects: list[Refused] = []
    late = 0
    for part in job.of_topics.values():
        taken = parsed_at_rest(records, part)
        rejects += refused(_collected(taken.where("reason IS NOT NULL").select(*Refused._fields)))
        late += taken.where("late").count() if part in job.streams.values() and part.topic.event_time else 0
    return sorted(set(rejects), key=lambda reject: reject[:3]), late


def _collected(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows
