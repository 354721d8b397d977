"""What a batch observed, as one value, and how many of its events the watermark dropped."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from platform_core.control.position import Position
from platform_core.streaming.batch.metrics import BatchMetrics, Dropped, measured
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.source.parsing import RECENT_MS
from tests.testing import jobs

NOW = 10 * RECENT_MS
DELAY = 10_000
WATERMARK = NOW - DELAY


def never(*_: object) -> Any:
    raise AssertionError("asked for nothing")


def batch(measures: BatchMetrics, watermark: int = WATERMARK) -> Batch:
    return Batch(position=Position("j@v1", 1, {}), measures=measures, planned_at_ms=NOW, late_before_ms=watermark)


def events(*behind_by: int) -> Batch:
    """With events as far behind the live watermark as said, in milliseconds."""
    times = [WATERMARK - by for by in behind_by]
    behind = [time for time in times if time <= WATERMARK]
    return batch(BatchMetrics(records=len(times), oldest_ms=min(times), behind_ms=behind))


def test_a_batch_in_time_asks_nobody() -> None:
    assert events(-1, -500).dropped(DELAY, never, never) == 0
    assert batch(BatchMetrics()).dropped(DELAY, never, never) == 0


def test_events_whose_windows_were_all_open_are_not_late() -> None:
    assert events(1, 5).dropped(DELAY, Dropped, never) == 0


@pytest.mark.parametrize(("partial", "late"), [(False, 3), (True, 2)])
def test_an_event_at_the_watermark_is_late_for_a_join_and_not_for_a_window(partial: bool, late: int) -> None:
    assert events(0, 1, 500, -3).dropped(DELAY, lambda: Dropped(9, partial), never) == late


def test_a_join_drops_no_more_events_than_rows() -> None:
    assert events(1, 2, 3).dropped(DELAY, lambda: Dropped(2), never) == 2


def test_events_from_long_ago_are_counted_without_being_listed() -> None:
    found = batch(BatchMetrics(records=4, oldest_ms=5, behind_ms=[WATERMARK - 1], ancient=3))
    assert found.dropped(DELAY, lambda: Dropped(20, partial=True), never) == 4


@pytest.mark.parametrize(
    "watermark", [NOW - 10_000 - RECENT_MS, NOW - 9_999, NOW + 60_000], ids=["past", "near", "ahead"]
)
def test_a_watermark_that_the_list_does_not_reach_is_counted_by_reading_again(watermark: int) -> None:
    found = batch(BatchMetrics(records=1, oldest_ms=0), watermark)
    seven_until = {watermark: 9, watermark - 1: 7}.__getitem__
    assert found.dropped(DELAY, lambda: Dropped(50, partial=True), seven_until) == 7
    assert found.dropped(DELAY, lambda: Dropped(50), seven_until) == 9
    assert found.dropped(DELAY, lambda: Dropped(5), seven_until) == 5


def reject(offset: int) -> dict[str, Any]:
    value = base64.b64encode(b"{").decode()
    return {"topic": "purchases", "partition": 0, "offset": offset, "timestamp_ms": 1, "value": value, "reason": "bad"}


def test_inputs_add_up_and_the_newest_of_any_is_the_clock() -> None:
    metrics = {
        "input_purchases": {
            "records": 5,
            "used": 4,
            "late": 1,
            "oldest_ms": 30,
            "newest_ms": 70,
            "newest_record_ms": 75,
        },
        "input_refunds": {"records": 3, "used": 3, "late": 0, "oldest_ms": 20, "newest_ms": 60, "newest_record_ms": 65},
    }
    found = measured(jobs.both, metrics)
    assert (found.records, found.used, found.late) == (8, 7, 1)
    assert (found.oldest_ms, found.newest_ms, found.newest_record_ms) == (20, 70, 75)


def test_lookup_records_move_the_clock_are_used_and_never_late() -> None:
    metrics = {
        "input_purchases": {"records": 1, "used": 1, "oldest_ms": 30, "newest_ms": 30, "rejects": []},
        "input_names": {"records": 4, "late": 0, "oldest_ms": 1, "newest_ms": 90, "rejects": [reject(1)]},
    }
    found = measured(jobs.greeted(), metrics)
    assert (found.records, found.used) == (5, 1 + 3)
    assert (found.oldest_ms, found.newest_ms) == (30, 90)


def test_a_record_that_two_inputs_refuse_is_rejected_once() -> None:
    twice = {name: {"rejects": [reject(1), reject(2)]} for name in ("input_purchases", "input_refunds")}
    assert [found.offset for found in measured(jobs.both, twice).rejects] == [1, 2]
    assert measured(jobs.both, twice).rejects[0].value == b"{"


def test_an_empty_batch_measures_nothing() -> None:
    nothing = {"input_purchases": {"records": 0, "oldest_ms": None, "newest_ms": None, "rejects": []}}
    assert measured(jobs.totals, nothing) == measured(jobs.totals, {}) == BatchMetrics()
