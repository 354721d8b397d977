"""Every kind of transform that Spark's streams know: stream and batch agree once all windows are closed."""

from __future__ import annotations

import pytest

from platform_core.declare import StreamingJob
from platform_core.testing import BATCH, CRASH, CRASH_AFTER_WRITE, END, QUIET, Kit, Script, Step, at, record
from tests.testing import jobs
from tests.testing.jobs import bought, paid_back

PURCHASES: tuple[Step, ...] = (
    bought("ann", 1, second=1),
    bought("bob", 2, second=3),
    bought("ann", 3, second=4.5),
    BATCH,
    bought("ann", 4, second=12),
    bought("bob", 2, second=3),
    QUIET,
    bought("bob", 6, second=15),
    CRASH_AFTER_WRITE,
    bought("ann", 7, second=16),
    bought("ann", 8, second=11),
    CRASH,
    bought("bob", 9, second=40),
    END,
)
REFUNDS = (paid_back("ann", 1, second=2), *PURCHASES[:-1], paid_back("bob", 9, second=45), END)

KINDS: dict[str, tuple[StreamingJob, Script]] = {
    "an aggregation for ever": (jobs.totals, PURCHASES),
    "tumbling windows": (jobs.tumbling, PURCHASES),
    "hopping windows": (jobs.hopping, PURCHASES),
    "session windows": (jobs.sessions, PURCHASES),
    "an outer join of two streams": (jobs.both, REFUNDS),
    "a stream joined with itself": (jobs.followed, PURCHASES),
    "windows of windows": (jobs.busiest, PURCHASES),
    "a lookup": (jobs.greeted(), PURCHASES),
}


@pytest.mark.parametrize("kind", KINDS)
def test_stream_and_batch_agree_across_boundaries_and_crashes(kit: Kit, kind: str) -> None:
    job, script = KINDS[kind]
    streamed, batch = kit.run(job, script), kit.run_as_batch(job, script)
    assert streamed.rows == batch.rows
    assert streamed.rows
    assert streamed.late == 0


def test_state_in_several_partitions_gives_the_same_rows(kit: Kit) -> None:
    assert kit.run(jobs.sessions, PURCHASES, partitions=3).rows == kit.run_as_batch(jobs.sessions, PURCHASES).rows


def test_a_session_ends_with_the_gap_after_its_last_event(kit: Kit) -> None:
    result = kit.run(jobs.sessions, PURCHASES)
    assert result.columns("user", "begins", "ends", "amounts") == [
        ("ann", at(1), at(9.5), [1, 3]),
        ("ann", at(11), at(21), [4, 7, 8]),
        ("bob", at(3), at(8), [2, 2]),
        ("bob", at(15), at(20), [6]),
        ("bob", at(40), at(45), [9]),
    ]


def test_duplicates_are_dropped_across_batches_and_crashes(kit: Kit) -> None:
    result = kit.run(jobs.once, PURCHASES)
    amounts = sorted(row["amount"] for row in result.rows)
    assert amounts == [1, 2, 3, 4, 6, 7, 8, 9]


def test_event_time_in_a_field_is_late_by_its_own_record_and_the_same_in_a_batch(kit: Kit) -> None:
    script = [
        record(jobs.ORDERS, key="ann", value={"user": "ann", "ordered_at": at(1)}, second=2),
        record(jobs.ORDERS, key="ann", value={"user": "ann", "ordered_at": at(1)}, second=6),
        record(jobs.ORDERS, key="ann", value={"user": "ann", "ordered_at": at(1)}, second=6.001),
    ]
    streamed, batch = kit.run(jobs.ordered, script), kit.run_as_batch(jobs.ordered, script)
    assert streamed.rows == batch.rows == [{"start": at(0), "count": 2}]
    assert streamed.late == batch.late == 1
