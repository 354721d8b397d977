"""A batch's writes come in one order, and a repeat writes nothing twice; with sinks that only remember."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from platform_core.control.position import Offsets, Position
from platform_core.declare import StreamingJob
from platform_core.errors import RejectLimitExceeded
from platform_core.streaming.batch.runner import BatchRunner
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.streaming.sink.rejects import Reject
from tests.testing import jobs

END: Offsets = {"purchases": {0: 5}}


class Held(Exception):
    pass


@dataclass
class Journal:
    """Everything that a batch does, in order; it has a sink by any name."""

    done: list[str] = field(default_factory=list[str])
    told: list[Batch] = field(default_factory=list[Batch])
    stop_at: str = ""

    def say(self, what: str) -> None:
        if what == self.stop_at:
            raise Held(what)
        self.done.append(what)

    def tell(self, batch: Batch) -> None:
        self.say("tell")
        self.told.append(batch)


@dataclass
class Noted:
    """A sink that adds a row to those behind it."""

    name: str
    journal: Journal

    def committed(self) -> int:
        return -1

    def prove(self, checkpoint: Checkpoint) -> None:
        """It keeps nothing."""

    def commit(self, batch: Batch) -> Batch:
        self.journal.say(f"{self.name} has {batch.changes.num_rows}")
        assert Position.from_json(batch.metadata).offsets == END
        return replace(batch, changes=pa.concat_tables([batch.changes, batch.changes.slice(0, 1)]))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:  # noqa: ARG003
        return ()


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


def batches(journal: Journal, job: StreamingJob = jobs.totals, rejects: int = 0, records: int = 5) -> BatchRunner:
    bad = [
        {"topic": "purchases", "partition": 0, "offset": n, "timestamp_ms": 0, "reason": "bad"} for n in range(rejects)
    ]
    metrics = {"input_purchases": {"records": records, "newest_ms": 60, "rejects": bad}}
    return BatchRunner(
        job=job,
        release="totals@v1",
        positions=Positions(),
        sinks=[Noted("first", journal), Noted("second", journal)],
        metrics=lambda: metrics,
        begin=lambda _: journal.say("begin"),
        may_write=lambda: journal.say("may write"),
        recount=lambda *_: 0,
        report=journal.tell,
    )


def frame(**columns: Any) -> Any:
    return Frame(pa.table(columns or {"user": ["ann", "bob"], "total": [1, 2]}))


def test_sinks_are_written_in_their_order_and_each_gets_what_the_one_before_made_of_the_batch() -> None:
    journal = Journal()
    batches(journal).run(frame(), 0)
    assert journal.done == ["begin", "may write", "first has 2", "second has 3", "tell"]
    assert journal.told[0].changes.num_rows == 4
    assert (journal.told[0].number, journal.told[0].planned_at_ms, journal.told[0].measures.records) == (0, 1000, 5)


@pytest.mark.parametrize("refused", ["begin", "may write"])
def test_nothing_is_written_once_the_guard_refuses(refused: str) -> None:
    journal = Journal(stop_at=refused)
    with pytest.raises(Held):
        batches(journal).run(frame(), 0)
    assert set(journal.done) <= {"begin"}


def test_over_the_reject_limit_nothing_of_the_batch_is_written() -> None:
    journal = Journal()
    with pytest.raises(RejectLimitExceeded):
        batches(journal, rejects=30, records=40).run(frame(), 0)
    assert journal.done == ["begin"]


def test_the_clock_never_goes_back() -> None:
    journal = Journal()
    running = batches(journal)
    running.clock_ms = 100
    running.run(frame(), 0)
    assert journal.told[0].position.newest_ms == 100


def test_a_reject_keeps_what_the_metric_says_of_it() -> None:
    raw = {"topic": "t", "partition": 1, "offset": 2, "timestamp_ms": 3, "value": "ew==", "reason": "r", "size": 9}
    assert Reject.from_metric(raw) == Reject("t", 1, 2, 3, None, b"{", "r", 9)
    assert Reject.from_metric(raw).truncated
