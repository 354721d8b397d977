"""Windows that end at each event, against the same counted by hand."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame

from platform_core.declare import StreamingJob, Table
from platform_core.errors import DeclarationError
from platform_core.patterns import sliding_windows
from platform_core.testing import BATCH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, at, clock
from tests.testing.jobs import BOUGHT, bought

SIZE = 10
SCHEMA = """
    user STRING, window_start TIMESTAMP, window_end TIMESTAMP, count BIGINT, count_before BIGINT, first_at TIMESTAMP
"""


def windows(purchases: DataFrame) -> DataFrame:
    return sliding_windows(purchases, "user", size=f"{SIZE} seconds")


JOB = StreamingJob(
    name="windows", inputs={"purchases": BOUGHT}, transform=windows, output=Table(name="windows", schema=SCHEMA)
)


def counted(purchases: list[tuple[str, float]]) -> list[tuple[Any, ...]]:
    """Each window as its definition says."""
    rows: list[tuple[Any, ...]] = []
    for user in {user for user, _ in purchases}:
        seconds = sorted(second for one, second in purchases if one == user)
        ends = sorted(set(seconds))
        inside = {end: [second for second in seconds if end - SIZE <= second <= end] for end in ends}
        before = {end: former for former, end in pairwise(ends) if former >= end - SIZE}
        rows += [
            (user, at(end), len(inside[end]), len(inside.get(before.get(end, -1), ())), at(inside[end][0]))
            for end in ends
        ]
    return sorted(rows)


def found(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    assert all(row["window_end"] - row["window_start"] == timedelta(seconds=SIZE) for row in rows)
    return sorted((row["user"], row["window_end"], row["count"], row["count_before"], row["first_at"]) for row in rows)


AT_THE_ENDS = {
    "one event": [0],
    "both ends are in the window": [0, 10],
    "a millisecond more is not": [0, 10.001],
    "events of the same time share a window": [3, 3, 3, 8, 8],
    "at the borders of the hopping windows": [9.999, 10, 19.999, 20, 20.001, 30],
    "before is beyond this window": [0, 0, 11, 12],
    "before is at its start": [0, 0, 10, 20, 20, 30],
    "around the start of a hopping window": [-0.001, 0, 0.001],
    "a gap of many sizes": [1, 2, 95, 96, 500],
}


def test_every_window_is_closed_on_both_ends_and_counted_once(kit: Kit) -> None:
    """Each user is a case; random ones on a grid that has many ties and distances of exactly one size."""
    purchases = [(name, float(second)) for name, seconds in AT_THE_ENDS.items() for second in seconds]
    random = Random(4)
    for user in range(40):
        purchases += [(f"user {user}", random.randrange(160) / 2) for _ in range(random.randrange(1, 40))]
    records = [bought(user, 1, second=second) for user, second in purchases]
    random.shuffle(records)
    assert found(kit.run_as_batch(JOB, records).rows) == counted(purchases)


def test_a_stream_gives_the_same_rows_whatever_the_order_and_the_batches(kit: Kit) -> None:
    """Out of order by up to the lateness; with a crash."""
    random = Random(5)
    purchases = [(random.choice("abc"), random.randrange(600) / 10) for _ in range(120)]
    purchases.sort(key=lambda one: one[1] + random.random() * 9.9)
    script: list[Any] = []
    for number, (user, second) in enumerate(purchases):
        script += [bought(user, 1, second=second), *{29: [QUIET], 59: [CRASH_AFTER_WRITE], 89: [BATCH]}.get(number, [])]
    result = kit.run(JOB, [*script, END])
    assert result.late == 0
    assert found(result.rows) == counted(purchases)


def test_a_row_comes_when_nothing_can_change_it_and_a_late_event_counts_where_windows_are_open(kit: Kit) -> None:
    """With a lateness of 10 s: window 12 is of the hopping window that ends at 20, window 25 of the one to 30."""
    script: list[Any] = [bought("ann", 1, second=12), bought("ann", 1, second=25), clock(29)]
    assert kit.run(JOB, script).rows == []
    script += [clock(31)]
    assert [row["window_end"] for row in kit.run(JOB, script).rows] == [at(12)]
    late: Record = bought("ann", 1, second=15)
    result = kit.run(JOB, [*script, late, END])
    assert result.late == 1
    assert found(result.rows) == [("ann", at(12), 1, 0, at(12)), ("ann", at(25), 2, 2, at(15))]


def test_a_flood_of_one_key_is_counted_in_seconds(kit: Kit) -> None:
    result = kit.run_as_batch(JOB, [bought("ann", 1, second=number / 1000) for number in range(20_000)])
    assert max(row["count"] for row in result.rows) == 10_001


def test_a_size_that_is_no_duration_is_an_error() -> None:
    with pytest.raises(DeclarationError, match=r"sliding_windows\.size: 'ten' is not a duration"):
        sliding_windows(None, "user", size="ten")  # pyright: ignore[reportArgumentType]
