"""Every sink is held to one contract: a batch is there once, and none that the checkpoint has not planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from platform_core.control.position import Position
from platform_core.declare import Json, Lookup, Publish, Stream, StreamingJob, Table, Text
from platform_core.errors import Permanent, PositionError
from platform_core.names import CHANGE, ReleaseId
from platform_core.settings import Settings, load
from platform_core.storage import Storage
from platform_core.streaming.batch.metrics import BatchMetrics
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.sink.encoding import records
from platform_core.streaming.sink.lookups import LookupTable, Waiting
from platform_core.streaming.sink.protocol import Sink
from platform_core.streaming.sink.rejects import Reject, Rejects
from platform_core.streaming.sink.table import SINKS, TableSink, output_of, table_sinks
from platform_core.tables.changes import ChangeType
from platform_core.testing import at
from platform_core.testing.crashes import MemoryTopics
from tests.testing.jobs import NAMES, PURCHASES, TOTALS

RELEASE, KEY, BY_USER = ReleaseId("greeted", 1), ("user",), Text("user")
TABLE = Table(name="greeted", schema="user STRING, n BIGINT, at TIMESTAMP, name STRING", key=("user",))
LOOKUP = Lookup(NAMES, on="user", at="at", takes=("name",), wait="2 seconds")
VERSIONS = pa.schema(
    [
        ("key", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("offset", pa.int64()),
        ("deleted", pa.bool_()),
        ("name", pa.string()),
    ]
)


def job(key: tuple[str, ...] = KEY, publish_key: Text | Json = BY_USER) -> StreamingJob:
    table = Table(name=TABLE.name, schema=TABLE.schema, key=key)
    return StreamingJob(
        name=TABLE.name,
        inputs={"purchases": Stream(PURCHASES), "names": LOOKUP},
        transform=lambda purchases: purchases,
        output=table,
        publish=Publish(TOTALS, publish_key, Json(("n",))),
    )


def row(user: str, n: int, change: ChangeType | None = None) -> dict[str, Any]:
    own = {"user": user, "n": n, "at": at(n), "name": None}
    return own if change is None else {**own, CHANGE: change.value}


def rows(*given: dict[str, Any]) -> pa.Table:
    kinds = [("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("name", pa.string())]
    return pa.Table.from_pylist(
        list(given), schema=pa.schema([*kinds, *([(CHANGE, pa.string())] if given and CHANGE in given[0] else [])])
    )


def batch(number: int, *given: dict[str, Any]) -> Batch:
    """One that has something for each sink."""
    version = {"key": "ann", "at": at(number), "offset": number, "deleted": False, "name": f"v{number}"}
    return Batch(
        position=Position(str(RELEASE), number, {"purchases": {0: number + 1}}, newest_ms=_ms(number)),
        measures=BatchMetrics(rejects=[Reject("purchases", 0, number, 0, b"k", b"{", "bad", 1)]),
        changes=rows(*(given or (row(f"u{number}", number),))),
        lookups={"names": pa.Table.from_pylist([version], schema=VERSIONS)},
    )


def _ms(second: int) -> int:
    return int(at(second).timestamp() * 1000)


@dataclass(frozen=True)
class Opened:
    """A sink that can be closed and opened again over what it has written, and what it shows."""

    open: Callable[[], Sink]
    shows: Callable[[Sink], Any]


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(environment={"WEIR_HOME": str(tmp_path)})


def of_tables(
    settings: Settings, duck: duckdb.DuckDBPyConnection, kind: type, key: tuple[str, ...] = ("user",)
) -> Sink:
    before, table = table_sinks(settings, job(key), RELEASE, settings.home / "checkpoint", duck)
    (found,) = [one for one in (*before, table) if isinstance(one, kind)]
    return found


def content(storage: Storage, kind: type) -> list[Any]:
    place = {
        Rejects: storage.rejects("greeted"),
        LookupTable: storage.lookup(RELEASE, "names"),
        TableSink: storage.table(RELEASE),
    }[kind]
    found = place.table().to_pyarrow_table()
    return sorted(found.select([name for name in found.column_names if name != "rejected_at"]).to_pylist(), key=repr)


KINDS = ["rejects", "waiting", "lookups", "keyed table", "appended table", "topic"]


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, settings: Settings, duck: duckdb.DuckDBPyConnection) -> Opened:
    kind: Any = {"rejects": Rejects, "waiting": Waiting, "lookups": LookupTable}.get(request.param, TableSink)
    if request.param == "topic":
        topic = MemoryTopics(job())  # its transactions with a real broker: tests/streaming/sink/test_output_topics.py
        return Opened(lambda: topic, lambda _: list(topic.sent.items()))
    key = () if request.param == "appended table" else ("user",)
    if kind is Waiting:
        files = settings.home / "checkpoint" / "waiting"
        return Opened(
            lambda: of_tables(settings, duck, kind), lambda sink: (files / f"{sink.committed()}.arrow").read_bytes()
        )
    return Opened(lambda: of_tables(settings, duck, kind, key), lambda _: content(settings.storage, kind))


def test_the_contract_is_asked_of_every_sink() -> None:
    assert [kind.__name__ for kind in SINKS] == ["Rejects", "Waiting", "LookupTable", "TableSink", "OutputTopics"]
    assert len(KINDS) == len(SINKS) + 1, "a table with a key and one without"


def test_it_has_nothing_before_its_first_batch_and_the_newest_after_each(opened: Opened) -> None:
    sink = opened.open()
    assert sink.committed() == -1
    for number in range(3):
        sink.commit(batch(number))
        assert sink.committed() == number
    assert opened.open().committed() == 2


def test_a_repeated_batch_changes_nothing_also_in_another_process(opened: Opened) -> None:
    sink = opened.open()
    for number in range(2):
        sink.commit(batch(number))
    once = opened.shows(sink)
    sink.commit(batch(1))
    again = opened.open()
    again.commit(batch(1))
    assert opened.shows(again) == once
    again.commit(batch(2))
    assert opened.shows(again) != once


def test_what_it_hands_on_is_the_same_when_a_batch_is_repeated(opened: Opened) -> None:
    sink = opened.open()
    sink.commit(batch(0))
    first = sink.commit(batch(1))
    assert opened.open().commit(batch(1)).changes.to_pylist() == first.changes.to_pylist()


def checkpoint(folder: Path, planned: int) -> Checkpoint:
    offsets = folder / "offsets"
    offsets.mkdir(parents=True)
    for number in range(planned + 1):
        facts = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'
        (offsets / str(number)).write_text(f'v1\n{facts}\n{{"purchases":{{"0":{number + 1}}}}}')
    (folder / "commits").mkdir()
    for number in range(planned):
        (folder / "commits" / str(number)).write_text("v1\n{}")
    return Checkpoint(folder)


@pytest.mark.parametrize("opened", KINDS[:-1], indirect=True)
def test_a_start_is_refused_where_it_has_more_than_the_checkpoint_has_planned(opened: Opened, tmp_path: Path) -> None:
    sink = opened.open()
    for number in range(3):
        sink.commit(batch(number))
    sink.prove(checkpoint(tmp_path / "whole", planned=2))
    with pytest.raises(PositionError, match="restored to another time"):
        sink.prove(checkpoint(tmp_path / "older", planned=1))


def test_rejects_and_lookups_that_had_nothing_lately_are_no_disagreement(
    settings: Settings, duck: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    for kind in (Rejects, LookupTable):
        sink = of_tables(settings, duck, kind)
        sink.commit(batch(0))
        sink.prove(checkpoint(tmp_path / kind.__name__, planned=5))


def test_a_deleted_row_leaves_the_table_and_one_that_was_not_there_changes_nothing(
    settings: Settings, duck: duckdb.DuckDBPyConnection
) -> None:
    table = TableSink(output_of(settings, job(), RELEASE), TABLE, duck)
    table.commit(batch(0, row("ann", 1), row("bob", 2), row("eve", 3)))
    changes = [
        row("ann", 9, ChangeType.UPDATE),
        {"user": "bob", "n": None, "at": None, "name": None, CHANGE: ChangeType.DELETE.value},
        row("new", 4, ChangeType.INSERT),
        row("none", 0, ChangeType.DELETE),
    ]
    done = table.commit(batch(1, *changes))
    assert (table.committed(), done.changes.num_rows, done.repeated) == (1, 4, False)
    left = {one["user"]: one["n"] for one in settings.storage.table(RELEASE).table().to_pyarrow_table().to_pylist()}
    assert left == {"ann": 9, "eve": 3, "new": 4}
    assert table.commit(batch(1, *changes)).repeated
    assert table.commit(batch(2, row("eve", 0, ChangeType.DELETE), row("ann", 0, ChangeType.DELETE))).table_version > 0
    assert settings.storage.table(RELEASE).table().to_pyarrow_table()["user"].to_pylist() == ["new"]


def test_of_a_row_and_its_deletion_in_one_batch_the_newest_record_counts(
    settings: Settings, duck: duckdb.DuckDBPyConnection
) -> None:
    table = TableSink(output_of(settings, job(), RELEASE), TABLE, duck)

    def stamped(second: int, **given: Any) -> dict[str, Any]:
        moment = datetime(2025, 3, 1, 12, 0, second, tzinfo=UTC)
        return {**given, "record": {"topic": "t", "partition": 0, "offset": second, "timestamp": moment}}

    given = [
        stamped(1, **row("ann", 1, ChangeType.INSERT)),
        stamped(2, **row("ann", 0, ChangeType.DELETE)),
        stamped(3, **row("bob", 0, ChangeType.DELETE)),
        stamped(4, **row("bob", 2, ChangeType.INSERT)),
    ]
    table.commit(Batch(position=Position(str(RELEASE), 0, {}), changes=pa.Table.from_pylist(given)))
    assert settings.storage.table(RELEASE).table().to_pyarrow_table()["user"].to_pylist() == ["bob"]


def test_a_table_without_a_key_takes_inserts_alone(settings: Settings, duck: duckdb.DuckDBPyConnection) -> None:
    table = of_tables(settings, duck, TableSink, key=())
    table.commit(batch(0, row("ann", 1, ChangeType.INSERT)))
    with pytest.raises(Permanent, match="rows to delete and update, and the table has no key"):
        table.commit(batch(1, row("ann", 1, ChangeType.DELETE), row("ann", 2, ChangeType.UPDATE)))
    assert table.committed() == 0


def test_a_deleted_row_is_a_tombstone_of_a_topic_that_has_the_tables_key(duck: duckdb.DuckDBPyConnection) -> None:
    changes = rows(row("ann", 1, ChangeType.UPDATE), row("bob", 2, ChangeType.DELETE), row("eve", 3, ChangeType.INSERT))
    (found,) = records(job(), changes, duck).values()
    assert found == [(b"ann", b'{"n":1}'), (b"eve", b'{"n":3}'), (b"bob", None)]


def test_a_topic_of_events_tells_of_no_deletion(duck: duckdb.DuckDBPyConnection) -> None:
    changes = rows(row("ann", 1, ChangeType.UPDATE), row("bob", 2, ChangeType.DELETE))
    (found,) = records(job(publish_key=Json(("user", "n"))), changes, duck).values()
    assert found == [(b'{"user":"ann","n":1}', b'{"n":1}')]


def test_a_deletion_keeps_its_kind_beside_a_lookup_and_does_not_wait_for_one(
    settings: Settings, duck: duckdb.DuckDBPyConnection
) -> None:
    deletion = batch(0, row("ann", 1, ChangeType.DELETE))
    looked_up = of_tables(settings, duck, LookupTable).commit(deletion)
    assert looked_up.changes[CHANGE].to_pylist() == [ChangeType.DELETE.value]
    with pytest.raises(Permanent, match="a deletion would overtake its row"):
        of_tables(settings, duck, Waiting).commit(deletion)
