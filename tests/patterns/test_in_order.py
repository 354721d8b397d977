"""A function that is given rows in order gives the same rows from a stream as from a batch, and its state ends."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from typing_extensions import override

from platform_core.declare import StreamingJob, Table
from platform_core.patterns import InOrder, in_order, moment
from platform_core.testing import BATCH, CRASH_AFTER_WRITE, END, QUIET, Kit, at, clock
from tests.testing.jobs import BOUGHT, bought

SCHEMA = "user STRING, bought_at TIMESTAMP, amount BIGINT, after BIGINT, number BIGINT"


class Followed(InOrder):
    """Each amount with the one before it, and its number since the user was forgotten."""

    values = "amount BIGINT"
    forgets_after = "30 seconds"

    @override
    def open(self, handle: StatefulProcessorHandle) -> None:
        self._before = handle.getValueState("before", "amount BIGINT, number BIGINT")

    @override
    def take(self, key: Any, at: int, *values: Any) -> Iterator[Row]:
        before, number = self._before.get() or (None, 0)
        self._before.update((values[0], number + 1))
        yield Row(user=key[0], bought_at=moment(at), amount=values[0], after=before, number=number + 1)

    @override
    def forget(self) -> None:
        self._before.clear()


def followed(purchases: DataFrame) -> DataFrame:
    return in_order(purchases, "user", function=Followed(), gives=SCHEMA)


JOB = StreamingJob(
    name="in_order", inputs={"purchases": BOUGHT}, transform=followed, output=Table(name="in_order", schema=SCHEMA)
)


def test_rows_come_by_time_whatever_the_order_the_batches_and_the_crashes(kit: Kit) -> None:
    random = Random(6)
    seconds = sorted(tenth / 10 for tenth in random.sample(range(900), 100))
    records = [bought(random.choice(("ann", "bob", "joe")), number + 1, second=s) for number, s in enumerate(seconds)]
    records.sort(key=lambda one: one.at.timestamp() + random.random() * 9.9)
    script = [*records[:25], BATCH, *records[25:50], QUIET, *records[50:75], CRASH_AFTER_WRITE, *records[75:], END]
    streamed = kit.run(JOB, script)
    assert streamed.late == 0
    assert streamed.rows == kit.run_as_batch(JOB, records).rows
    for user in ("ann", "bob", "joe"):
        own = [row for row in streamed.rows if row["user"] == user]
        assert [row["after"] for row in own[1:]] == [row["amount"] for row in own[:-1]]
        assert [row["number"] for row in own] == list(range(1, len(own) + 1))


def test_a_row_waits_for_the_watermark_and_one_behind_it_is_late(kit: Kit) -> None:
    ann = [bought("ann", 1, second=20), BATCH, bought("ann", 2, second=11), bought("ann", 3, second=11)]
    assert kit.run(JOB, [*ann, clock(20)]).rows == []
    result = kit.run(JOB, [*ann, clock(25), bought("ann", 4, second=12), END])
    assert result.columns("bought_at", "amount", "after") == [(at(11), 2, None), (at(11), 3, 2), (at(20), 1, 3)]
    assert result.late == 1


def test_a_key_is_forgotten_after_its_last_row_and_not_before(kit: Kit) -> None:
    """By the clock, as bob is, or as the next row comes later than that: both alike, as a batch has no clock."""
    rows = [
        *[bought(user, 1, second=0) for user in ("ann", "bob", "joe")],
        bought("joe", 2, second=20),
        bought("ann", 2, second=30),
        clock(45),
        bought("bob", 2, second=36),
        clock(200),
        *[bought(user, 3, second=200) for user in ("ann", "bob")],
        bought("ann", 4, second=230),
        bought("ann", 5, second=260.001),
        END,
    ]
    streamed = kit.run(JOB, rows)
    assert streamed.rows == kit.run_as_batch(JOB, rows).rows
    assert streamed.columns("user", "amount", "number") == [
        *[("ann", 1, 1), ("ann", 2, 2), ("ann", 3, 1), ("ann", 4, 2), ("ann", 5, 1)],
        *[("bob", 1, 1), ("bob", 2, 1), ("bob", 3, 1)],
        *[("joe", 1, 1), ("joe", 2, 2)],
    ]
    assert streamed.late == 0


def test_a_batch_of_a_frame_with_a_watermark_is_a_batch_all_the_same(spark: SparkSession) -> None:
    """As `weir plan --last` runs a transform."""
    shape = "user STRING, amount BIGINT, event_time TIMESTAMP, record STRUCT<partition: INT, offset: BIGINT>"
    rows = [("ann", number, at(10 - number), (0, number)) for number in range(3)]
    frame = spark.createDataFrame(rows, shape).withWatermark("event_time", "1 second")
    assert [(row["amount"], row["after"]) for row in followed(frame).collect()] == [(2, None), (1, 2), (0, 1)]
