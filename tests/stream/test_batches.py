"""A batch's writes come in one order, and a repeat writes nothing twice; with sinks that only remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from platform_core.control.position import Offsets, Position
from platform_core.declare import StreamingJob
from platform_core.errors import RejectLimitExceeded
from platform_core.stream.batches import Batches, Outcome, Sinks
from platform_core.stream.publish import Message
from platform_core.stream.rejects import Reject
from tests.testing import jobs

END: Offsets = {"purchases": {0: 5}}


class Held(Exception):
    pass


@dataclass
class Journal:
    """Everything that a batch does, in order. It stands for every sink."""

    done: list[str] = field(default_factory=list[str])
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    told: list[Outcome] = field(default_factory=list[Outcome])
    newest: int = -1
    stop_at: str = ""

    def say(self, what: str) -> None:
        if what == self.stop_at:
            raise Held(what)
        self.done.append(what)

    columns = ("user", "total")

    def applied(self) -> int:
        return self.newest

    def write(self, rows: Any, batch: int, metadata: str) -> int:
        if isinstance(rows, list):
            self.say("rejects")
            return 0
        self.say("table")
        if self.newest < batch:
            self.newest, self.rows = batch, rows.to_pylist()
        assert Position.from_json(metadata).offsets == END
        return 7

    def publish(self, messages: list[Message], batch: int, end: Offsets) -> int:
        self.say("publish")
        assert (batch, end) == (max(self.newest, 0), END)
        return len(messages)

    def tell(self, outcome: Outcome) -> None:
        self.say("tell")
        self.told.append(outcome)


class Positions:
    def position(self, release: str, batch: int, newest_ms: int = 0) -> Position:
        return Position(release, batch, END, newest_ms=newest_ms)

    def late_before_ms(self, batch: int) -> int:
        return 0 * batch

    def planned_at_ms(self, batch: int) -> int:
        return 1000 + batch


@dataclass(frozen=True)
class Frame:
    rows: pa.Table

    def toArrow(self) -> pa.Table:
        return self.rows


def batches(journal: Journal, job: StreamingJob = jobs.totals, rejects: int = 0, records: int = 5) -> Batches:
    bad = [
        {"topic": "purchases", "partition": 0, "offset": n, "timestamp_ms": 0, "reason": "bad"} for n in range(rejects)
    ]
    metrics = {"input_purchases": {"records": records, "newest_ms": 60, "rejects": bad}}
    sink: Any = journal
    return Batches(
        job=job,
        release="totals@v1",
        positions=Positions(),
        sinks=Sinks(output=sink, rejects=sink, publisher=sink if job.publish else None),
        duck=duckdb.connect(),
        metrics=lambda: metrics,
        begin=lambda _: journal.say("begin"),
        may_write=lambda: journal.say("may write"),
        recount=lambda *_: 0,
        report=journal.tell,
    )


def frame(**columns: Any) -> Any:
    return Frame(pa.table(columns or {"user": ["ann", "bob"], "total": [1, 2]}))


def test_rejects_come_before_the_table_and_the_topic_after_it() -> None:
    journal = Journal()
    batches(journal).run(frame(), 0)
    assert journal.done == ["begin", "may write", "rejects", "table", "publish", "tell"]
    assert (journal.told[0].rows, journal.told[0].published, journal.told[0].table_version) == (2, 2, 7)


@pytest.mark.parametrize("refused", ["begin", "may write"])
def test_nothing_is_written_once_the_guard_refuses(refused: str) -> None:
    journal = Journal(stop_at=refused)
    with pytest.raises(Held):
        batches(journal).run(frame(), 0)
    assert not {"rejects", "table", "publish", "tell"} & set(journal.done)


def test_over_the_reject_limit_nothing_of_the_batch_is_written() -> None:
    journal = Journal()
    with pytest.raises(RejectLimitExceeded):
        batches(journal, rejects=30, records=40).run(frame(), 0)
    assert journal.done == ["begin"]


def test_a_repeated_batch_is_computed_published_and_told_as_repeated() -> None:
    journal = Journal(newest=3)
    batches(journal).run(frame(), 3)
    assert journal.rows == []
    assert journal.told[0].repeated
    assert "publish" in journal.done


def test_the_clock_never_goes_back() -> None:
    journal = Journal()
    running = batches(journal)
    running.clock_ms = 100
    running.run(frame(), 0)
    assert journal.told[0].position.newest_ms == 100


def test_a_job_without_a_topic_shows_its_progress_all_the_same() -> None:
    journal, shown = Journal(), list[Offsets]()
    running = batches(journal, jobs.newest)
    running.sinks.mirror = shown.append
    running.run(frame(user=["ann"], amount=[1]), 0)
    assert shown == [END]


def record(second: int, partition: int = 0, offset: int = 0) -> dict[str, Any]:
    moment = datetime(2025, 3, 1, 12, 0, second, tzinfo=UTC)
    return {"topic": "purchases", "partition": partition, "offset": offset, "timestamp": moment}


def test_of_several_rows_of_a_key_the_one_of_the_newest_record_is_written() -> None:
    journal = Journal()
    rows = frame(user=["ann", "ann", "bob"], amount=[1, 2, 3], record=[record(5), record(4), record(1)])
    batches(journal, jobs.newest).run(rows, 0)
    assert sorted((row["user"], row["amount"]) for row in journal.rows) == [("ann", 1), ("bob", 3)]
    assert all(set(row) == {"user", "amount"} for row in journal.rows)


def test_of_two_records_of_one_moment_the_later_offset_counts() -> None:
    journal = Journal()
    rows = frame(user=["ann", "ann"], amount=[1, 2], record=[record(5, offset=8), record(5, offset=9)])
    batches(journal, jobs.newest).run(rows, 0)
    assert journal.rows == [{"user": "ann", "amount": 2}]


def test_a_reject_keeps_what_the_metric_says_of_it() -> None:
    raw = {"topic": "t", "partition": 1, "offset": 2, "timestamp_ms": 3, "value": "ew==", "reason": "r", "size": 9}
    assert Reject.from_metric(raw) == Reject("t", 1, 2, 3, None, b"{", "r", 9)
    assert Reject.from_metric(raw).truncated
