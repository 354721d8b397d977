"""Windows that move with each event, as Kafka Streams' `SlidingWindows`: closed on both ends, [t - size, t].

Kafka Streams also has a window that begins right after each event. It never holds more events than the one that ends
at its newest event, which is here: what is counted in any span of `size` is counted.

How it is computed: Spark's hopping windows of three sizes, one size apart, collect the event times of a key. An event
is looked at in the one hopping window whose newest third it is in: there all of its own window is seen, and all of the
window of the event before it. So each event's row comes once, whatever the order of arrival, and the same from a
stream and from a batch. A row comes when the watermark has passed the end of the hopping window, at most one size
after the event. State: each event time three times, for up to three sizes and the lateness.

An event behind the watermark is in none of the hopping windows that have closed, and in those still open: it has no
row of its own any more, but may count in the windows of younger events.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from platform_core.declare.durations import duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MILLISECOND, _MICROSECOND = timedelta(milliseconds=1), timedelta(microseconds=1)
_LARGEST_STEP = 30  # 2 ** 30: with all smaller powers it reaches every place of an array


def sliding_windows(events: DataFrame, *by: str, size: str) -> DataFrame:
    """One row for each time at which events of a key came, of the window that ends there.

    Columns: `by`, `window_start` and `window_end` (both inclusive), `count` of events in it, `first_at` (the time of
    its oldest event), and `count_before`: of the window that ended at the key's event time before it, 0 where that is
    not in this window. Events of one time and key share a window. For streams with a lateness, in jobs whose rows are
    final: an appended table, or `emits="final"`.
    """
    from pyspark.sql import functions as F

    span = duration(size, "sliding_windows.size")
    times = F.sort_array(F.collect_list(F.unix_micros("event_time"))).alias("times")
    panes = events.groupBy(*by, _hopping(span).alias("pane")).agg(times)
    window = F.explode(_windows(span // _MICROSECOND)).alias("window")
    found = panes.select(*by, window).select(*by, "window.*")
    instants = ("window_start", "window_end", "first_at")
    return found.withColumns({name: F.timestamp_micros(name) for name in instants})


def _hopping(span: timedelta) -> Column:
    from pyspark.sql import functions as F

    millis = span // _MILLISECOND
    return F.window("event_time", f"{3 * millis} milliseconds", f"{millis} milliseconds")


def _windows(span: int) -> Column:
    """Of the hopping window's newest third, an array: each event time with its window."""
    from pyspark.sql import functions as F

    times, newest_third = F.col("times"), F.unix_micros("pane.start") + 2 * span
    ends = F.array_distinct(F.filter(times, lambda time: time >= newest_third))
    placed = F.transform(ends, lambda end: _placed(times, end, span))
    return F.transform(placed, lambda one: _counted(times, one, span))


def _placed(times: Column, end: Column, span: int) -> Column:
    """Where the window and its newest events begin and end among the times."""
    from pyspark.sql import functions as F

    return F.struct(
        end.alias("end"),
        _below(times, end - span).alias("first"),
        _below(times, end).alias("newest"),
        _below(times, end + 1).alias("after"),
    )


def _counted(times: Column, one: Column, span: int) -> Column:
    from pyspark.sql import functions as F

    end, before = one["end"], F.get(times, one["newest"] - 1)
    count_before = F.when(before >= end - span, one["newest"] - _below(times, before - span)).otherwise(0)
    return F.struct(
        (end - span).alias("window_start"),
        end.alias("window_end"),
        (one["after"] - one["first"]).cast("bigint").alias("count"),
        count_before.cast("bigint").alias("count_before"),
        F.get(times, one["first"]).alias("first_at"),
    )


def _below(times: Column, bound: Column) -> Column:
    """How many of the sorted times are below the bound: a binary search, so that a flood of one key stays cheap."""
    from pyspark.sql import functions as F

    steps = F.array(*(F.lit(2**power) for power in range(_LARGEST_STEP, -1, -1)))
    return F.aggregate(
        steps,
        F.lit(0),
        lambda found, step: F.when(F.get(times, found + step - 1) < bound, found + step).otherwise(found),
    )
