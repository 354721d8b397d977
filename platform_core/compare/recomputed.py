"""What a side's table must hold, computed as a batch from the records as that side took them.

A record that is behind the watermark still counts in windows that close after it. So it is not the same records for
every row, and rows are computed in groups: of windows that lie apart, or that close between the same two watermarks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from platform_core.declare import Stream, StreamingJob
from platform_core.names import PART
from platform_core.streaming.source.parsing import admitted, parsed_at_rest
from platform_core.streaming.transform.query_plan import laid_out

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_NEVER = 1 << 62
_MOST_WINDOWS = 100  # a run: each record is held against them
MOST_SPANS = 60  # each is a run of the transform; where there are more, rows that late records touched are not computed
Texts = tuple[str | None, ...]


def match_columns(job: StreamingJob) -> list[str]:
    """By what a row of the transform is known again in the table: its key; all but what lookups put in its place."""
    if job.output.keyed:
        return list(job.output.key)
    replaced = {name for part in job.lookups.values() for name in (*part.fills, *part.otherwise)}
    return [column.name for column in job.output.columns if column.name not in replaced]


@dataclass(frozen=True)
class Recomputation:
    """Differing rows, as they are in the tables, and the records that may have to do with them."""

    job: StreamingJob
    records: DataFrame
    rows: DataFrame
    names: tuple[str, ...]  # of the columns that are compared, the key's first
    times: tuple[str, ...]  # columns that name a moment
    actual: Mapping[Any, Texts]  # by number and side

    @cached_property
    def keys(self) -> set[Texts]:
        return {row[: self.key] for row in self.actual.values()}

    @property
    def key(self) -> int:
        return len(match_columns(self.job))

    @property
    def closing(self) -> Expression:
        """When a row's last moment is over, in milliseconds."""
        from pyspark.sql import functions as F

        return F.greatest(*map(F.unix_millis, self.times), F.lit(0))

    @property
    def beginning(self) -> Expression:
        from pyspark.sql import functions as F

        return F.least(*map(F.unix_millis, self.times), F.lit(_NEVER))

    def given(self, counts: Expression, where: Expression | None = None) -> set[Texts]:
        """The transform's rows of these keys, from the records that count."""
        rows = transformed(self.job, self.records, counts)
        found = collected(rows if where is None else rows.where(where), names=self.names).values()
        return {row for row in found if row[: self.key] in self.keys}


def ways(job: StreamingJob, times: Sequence[str]) -> list[Callable[[Recomputation, str], set[Texts]]]:
    """How to compute what a side has, the quickest first; the next is asked about what is left."""
    if not job.output.keyed or not times:
        return [_in_time]
    return [_in_windows, _in_spans] if len(times) > 1 else [_in_spans]


def _late(side: str) -> Expression:
    from pyspark.sql import functions as F

    return F.coalesce(F.col(f"late_{side}"), F.lit(-1))


def _is_in_time(side: str) -> Expression:
    from pyspark.sql import functions as F

    return F.unix_millis("event_time") > _late(side)


def _in_time(asked: Recomputation, side: str) -> set[Texts]:
    """Of a row that comes once: what was behind the watermark is not in it."""
    return asked.given(_is_in_time(side))


def _in_windows(asked: Recomputation, side: str) -> set[Texts]:
    """As if each row were of the records between its first and its last moment: a record behind the watermark counts
    in windows that it has not reached. Windows that lie apart share no record, so that one run computes them all."""
    from pyspark.sql import functions as F

    found: set[Texts] = set()
    pairs = asked.rows.select(asked.beginning, asked.closing).distinct().collect()
    for group in _apart(sorted((row[0], row[1]) for row in pairs)):
        ends = F.lit([end for _, end in group])
        closes = F.array_min(F.filter(ends, lambda end: end > F.unix_millis("event_time")))
        counts = _is_in_time(side) | F.coalesce(closes > _late(side), F.lit(False))
        own = [(asked.beginning == begin) & (asked.closing == end) for begin, end in group]
        found |= asked.given(counts, reduce(or_, own))
    return found


def _apart(windows: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Sorted into groups whose windows do not overlap, and that are not too long to be looked through."""
    groups: list[list[tuple[int, int]]] = []
    for window in windows:
        fits = (group for group in groups if group[-1][1] <= window[0] and len(group) < _MOST_WINDOWS)
        fitting = next(fits, None)
        if fitting is None:
            groups.append([window])
        else:
            fitting.append(window)
    return groups


def _in_spans(asked: Recomputation, side: str) -> set[Texts]:
    """Whatever a row's records are: those that close between two watermarks miss the same late records."""
    found: set[Texts] = set()
    late, in_time = _late(side), _is_in_time(side)
    spans = _spans(asked.job, asked.records, ~in_time, late, asked.rows.select(asked.closing).distinct())
    if len(spans) > MOST_SPANS:
        touched = _touched(asked.job, asked.records, in_time, asked.names[: asked.key])
        own = {row for (_, of), row in asked.actual.items() if of == side and row[: asked.key] in touched}
        return own | {row for row in asked.given(in_time) if row[: asked.key] not in touched}
    for low, high in spans:
        found |= asked.given(in_time | (late <= low), (asked.closing > low) & (asked.closing <= high))
    return found


def _spans(
    job: StreamingJob, records: DataFrame, behind: Expression, late: Expression, closings: DataFrame
) -> list[tuple[int, int]]:
    """Between which watermarks the differing rows close: rows of one span miss the same late records.

    A record that is behind the watermark still counts in windows that close after it.
    """
    own = [parsed_at_rest(records, part).where(behind) for part in job.streams.values()]
    levels = sorted({row[0] for found in own for row in found.select(late.alias("at")).distinct().collect()})
    spans: set[tuple[int, int]] = set()
    for (closing,) in closings.collect():
        place = bisect_left(levels, closing)
        low = levels[place - 1] if place else -1
        spans.add((low, levels[place] if place < len(levels) else _NEVER))
    return sorted(spans)


def _touched(job: StreamingJob, records: DataFrame, in_time: Expression, names: Sequence[str]) -> set[Texts]:
    """Keys whose rows this side's late records may have changed. A bug in one of these rows alone would be taken for
    their doing; one in the code shows in all the others, too."""
    from pyspark.sql import functions as F

    whole, without = transformed(job, records, F.lit(True)), transformed(job, records, in_time)
    differing = whole.exceptAll(without).unionByName(without.exceptAll(whole))
    return set(collected(differing, names=names).values())


def transformed(job: StreamingJob, records: DataFrame, counts: Expression) -> DataFrame:
    inputs = {name: _taken(part, records, counts) for name, part in job.streams.items()}
    return laid_out(job.transform(**inputs), job).drop(PART)


def _taken(part: Stream, records: DataFrame, counts: Expression) -> DataFrame:
    own = parsed_at_rest(records, part)
    return admitted(own.where(counts) if part.watermarked else own, part)


def of_keys(rows: DataFrame, names: Sequence[str], keys: Collection[Texts]) -> set[Texts]:
    count = len(next(iter(keys), ()))
    return {row for row in collected(rows, names=names).values() if row[:count] in keys}


def collected(rows: DataFrame, *by: str, names: Sequence[str]) -> dict[Any, Texts]:
    """Rows as text: equal exactly when the values are, NaN and null too."""
    from pyspark.sql import functions as F

    chosen = [F.col(name).cast("string").alias(name) for name in names]
    found = [tuple(row) for row in rows.select(*by, *chosen).collect()]
    return {(row[: len(by)] or place): row[len(by) :] for place, row in enumerate(found)}
