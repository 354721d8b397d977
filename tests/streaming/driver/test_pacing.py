"""A live query's batches: as few as keep what the job promises, and none in the way of a stop."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from platform_core.services import process
from platform_core.streaming.driver.pacing import Pace, TriggerClock
from platform_core.streaming.driver.query import ReleaseQuery
from tests.testing import jobs

LARGEST = 1_000


def paced(promised: float, *batches: tuple[float, int]) -> float:
    pace = Pace(promised, LARGEST)
    for took, records in batches:
        pace.committed(took, records)
    return pace.period()


@pytest.mark.parametrize(("promised", "took", "period"), [(1.0, 0.25, 0.75), (60.0, 0.25, 59.75), (1.0, 0.9, 0.1)])
def test_a_batch_begins_so_that_what_came_after_the_last_is_readable_in_time(
    promised: float, took: float, period: float
) -> None:
    assert paced(promised, (took, 10)) == pytest.approx(period, rel=0.01)


def test_a_promise_that_batches_alone_break_makes_no_more_of_them() -> None:
    assert paced(1.0, *[(3.0, 10)] * 10) == 1.0


def test_nothing_is_waited_for_before_a_batch_has_shown_its_time() -> None:
    assert paced(60.0) == 0


def test_a_full_batch_is_followed_at_once_whatever_was_promised() -> None:
    assert paced(60.0, (0.2, 10), (0.3, LARGEST)) == 0
    assert paced(60.0, (0.2, LARGEST), (0.3, 10)) == pytest.approx(60.0, abs=0.4)


def test_one_slow_batch_of_many_costs_little_and_is_forgotten() -> None:
    assert paced(1.0, (0.2, 10), (0.8, 10), (0.2, 10)) < 0.25
    assert 0.75 < paced(1.0, (0.8, 10), *[(0.2, 10)] * 150) < 0.85
    assert paced(1.0, (0.8, 10), *[(0.2, 10)] * 200) == pytest.approx(0.8, rel=0.01)


def test_99_of_100_records_are_readable_in_time_by_as_few_batches_as_that_takes() -> None:
    random = Random(7)
    for spread in (0.05, 0.2, 0.5):
        took = [0.2 + random.random() * spread + (0.3 if random.random() < 0.02 else 0) for _ in range(200)]
        period = paced(1.0, *[(one, 10) for one in took])
        waits = [random.random() * period + one for one in took for _ in range(500)]
        assert 0.002 < sum(wait > 1.0 for wait in waits) / len(waits) < 0.01, spread


def test_a_wait_counts_from_the_former_trigger() -> None:
    moments = iter([0.0, 0.4, 10.0, 10.0])  # begun, committed, asked to wait, triggered again
    clock = TriggerClock(Pace(1.0, LARGEST), lambda: True, lambda: next(moments))
    clock.committed(10)
    assert clock.waitTillTime(0) == 0, "it was due long ago"


class Seen:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.came = threading.Event()

    def run(self, frame: DataFrame, _: int) -> None:
        self.rows.append(frame.count())
        self.came.set()


def test_a_query_that_waits_for_its_next_batch_stops_at_once_and_plans_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers, seen = tmp_path / "numbers", Seen()
    spark.range(3).write.json(str(numbers))
    rows = spark.readStream.schema("id LONG").json(str(numbers))
    query = ReleaseQuery(jobs.once, rows, tmp_path / "checkpoint", seen.run)
    query.start(Pace(3600.0, LARGEST))
    assert process.until(seen.came.is_set, 60)
    query.committed(3)  # from now on it is paced: the next batch would begin in an hour
    spark.range(3).write.mode("append").json(str(numbers))
    assert process.until(lambda: not query.query.status["isTriggerActive"], 60)
    query.watch(lambda: True)
    assert not query.active
    assert seen.rows == [3]
    assert [path.name for path in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*")] == ["0"]


def test_a_promise_of_no_time_makes_batches_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    numbers, seen = tmp_path / "numbers", Seen()
    spark.range(3).write.json(str(numbers))
    rows = spark.readStream.schema("id LONG").json(str(numbers))
    query = ReleaseQuery(jobs.once, rows, tmp_path / "checkpoint", seen.run)
    query.start(Pace(0.0, LARGEST))
    assert process.until(lambda: len(seen.rows) == 1, 60)
    spark.range(5).coalesce(1).write.mode("append").json(str(numbers))
    assert process.until(lambda: sum(seen.rows) == 8, 60)
    query.watch(lambda: True)
    assert seen.rows == [3, 5]
