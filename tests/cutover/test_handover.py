"""What an output topic lacks when a release with other rows takes it over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_core.cutover.handover import TableAtVersion, TopicHandover, difference, lacking
from platform_core.declare import Format, Publish, Stream, StreamingJob, Table, Text, Topic
from platform_core.declare.described import plain
from platform_core.storage import Place
from platform_core.streaming.sink.encoding import is_keyed

LINES = Topic(name="lines", value="line STRING", format=Format.TEXT)
COUNTS = Topic(name="counts", value="n STRING", format=Format.TEXT)
TABLE = Table(name="counts", schema="word STRING, n BIGINT", key=("word",))
PUBLISH = Publish(COUNTS, key=Text("word"), value=Text("n"))


def job(publish: Publish | tuple[Publish, ...] | None = PUBLISH, table: Table = TABLE) -> StreamingJob:
    return StreamingJob(
        name="counts", inputs={"lines": Stream(LINES)}, transform=lambda lines: lines, output=table, publish=publish
    )


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def old(tmp_path: Path) -> TableAtVersion:
    return written(tmp_path / "old", {"word": ["a", "b", "gone"], "n": [1, 2, 3]})


def written(place: Path, columns: dict[str, list[object]]) -> TableAtVersion:
    write_deltalake(str(place), pa.table(columns))
    return TableAtVersion(Place(str(place)), 0)


def test_changed_and_new_rows_are_written_and_missing_ones_deleted(
    tmp_path: Path, old: TableAtVersion, duck: duckdb.DuckDBPyConnection
) -> None:
    new = written(tmp_path / "new", {"word": ["a", "b", "c"], "n": [1, 7, 9]})
    assert difference(duck, job(), PUBLISH, old, new) == [(b"b", b"7"), (b"c", b"9"), (b"gone", None)]


def test_equal_tables_need_nothing(old: TableAtVersion, duck: duckdb.DuckDBPyConnection) -> None:
    assert difference(duck, job(), PUBLISH, old, old) == []


def test_a_table_of_another_shape_is_written_whole(
    tmp_path: Path, old: TableAtVersion, duck: duckdb.DuckDBPyConnection
) -> None:
    new = written(tmp_path / "new", {"word": ["a"], "n": [1], "seen": [5]})
    wider = Table(name="counts", schema="word STRING, n BIGINT, seen BIGINT", key=("word",))
    assert difference(duck, job(table=wider), PUBLISH, old, new) == [(b"a", b"1"), (b"b", None), (b"gone", None)]


def test_a_topic_keyed_otherwise_than_the_table_holds_events_and_needs_no_difference() -> None:
    assert is_keyed(job(), PUBLISH)
    assert not is_keyed(job(), Publish(COUNTS, key=Text("n"), value=Text("word")))


def test_a_keyed_topic_gets_what_differs_from_what_was_published_and_not_from_where_the_table_stood(
    tmp_path: Path, old: TableAtVersion
) -> None:
    published = written(tmp_path / "published", {"word": ["a", "b"], "n": [1, 1]})
    new = written(tmp_path / "new", {"word": ["a", "b", "c"], "n": [1, 2, 3]})
    change = TopicHandover(published, old, new, wrote=[plain(PUBLISH)])
    assert lacking(job(), change) == {"counts": [(b"b", b"2"), (b"c", b"3")]}


def test_a_topic_of_events_gets_what_the_old_release_had_left_to_write(tmp_path: Path, old: TableAtVersion) -> None:
    events = Publish(COUNTS, key=Text("n"), value=Text("word"))
    published = written(tmp_path / "published", {"word": ["a", "b"], "n": [1, 2]})
    new = written(tmp_path / "new", {"word": ["z"], "n": [9]})
    assert lacking(job(events), TopicHandover(published, old, new, [plain(events)])) == {"counts": [(b"3", b"gone")]}
    assert lacking(job(events), TopicHandover(old, old, new, [plain(events)])) == {"counts": []}


def test_a_topic_that_the_old_release_did_not_write_gets_every_row_of_a_key_and_no_past_event(
    tmp_path: Path, old: TableAtVersion
) -> None:
    published = written(tmp_path / "published", {"word": ["a", "b"], "n": [1, 2]})
    events = Publish(Topic(name="events", value="word STRING", format=Format.TEXT), key=Text("n"), value=Text("word"))
    found = lacking(job((PUBLISH, events)), TopicHandover(published, old, old, wrote=[]))
    assert found == {"counts": [(b"a", b"1"), (b"b", b"2"), (b"gone", b"3")], "events": []}


def test_a_topic_that_the_old_release_wrote_otherwise_is_written_whole(old: TableAtVersion) -> None:
    wrote = {**plain(PUBLISH), "value": {"is": "Json", "columns": ["n"]}}
    change = TopicHandover(old, old, old, [wrote])
    assert lacking(job(), change) == {"counts": [(b"a", b"1"), (b"b", b"2"), (b"gone", b"3")]}


def test_what_an_older_platform_has_described_had_no_condition(old: TableAtVersion) -> None:
    wrote = {name: part for name, part in plain(PUBLISH).items() if name != "where"}
    assert lacking(job(), TopicHandover(old, old, old, [wrote])) == {"counts": []}


def test_a_row_that_a_topics_condition_leaves_out_is_deleted_there(tmp_path: Path, old: TableAtVersion) -> None:
    few = replace(PUBLISH, where="n < 3")
    new = written(tmp_path / "new", {"word": ["a", "b", "gone"], "n": [1, 7, 3]})
    change = TopicHandover(old, old, new, [plain(few)])
    assert lacking(job(few), change) == {"counts": [(b"b", None)]}
    unlike = TopicHandover(old, old, new, [plain(PUBLISH)])
    assert lacking(job(few), unlike) == {"counts": [(b"a", b"1"), (b"b", None), (b"gone", None)]}
