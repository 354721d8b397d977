"""What a keyed topic lacks when a release with other rows takes it over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_core.cutover.handover import TableAtVersion, TopicHandover, difference, lacking
from platform_core.declare import Format, Publish, Stream, StreamingJob, Table, Text, Topic
from platform_core.storage import Place
from platform_core.streaming.sink.publish import is_keyed

LINES = Topic(name="lines", value="line STRING", format=Format.TEXT)
COUNTS = Topic(name="counts", value="n STRING", format=Format.TEXT)
TABLE = Table(name="counts", schema="word STRING, n BIGINT", key=("word",))
PUBLISH = Publish(COUNTS, key=Text("word"), value=Text("n"))


def job(publish: Publish | None = PUBLISH, table: Table = TABLE) -> StreamingJob:
    return StreamingJob(
        name="counts", inputs={"lines": Stream(LINES)}, transform=lambda lines: lines, output=table, publish=publish
    )


@pytest.fixture
def old(tmp_path: Path) -> TableAtVersion:
    return written(tmp_path / "old", {"word": ["a", "b", "gone"], "n": [1, 2, 3]})


def written(place: Path, columns: dict[str, list[object]]) -> TableAtVersion:
    write_deltalake(str(place), pa.table(columns))
    return TableAtVersion(Place(str(place)), 0)


def test_changed_and_new_rows_are_written_and_missing_ones_deleted(tmp_path: Path, old: TableAtVersion) -> None:
    new = written(tmp_path / "new", {"word": ["a", "b", "c"], "n": [1, 7, 9]})
    assert difference(job(), PUBLISH, old, new) == [(b"b", b"7"), (b"c", b"9"), (b"gone", None)]


def test_equal_tables_need_nothing(old: TableAtVersion) -> None:
    assert difference(job(), PUBLISH, old, old) == []


def test_a_table_of_another_shape_is_written_whole(tmp_path: Path, old: TableAtVersion) -> None:
    new = written(tmp_path / "new", {"word": ["a"], "n": [1], "seen": [5]})
    wider = Table(name="counts", schema="word STRING, n BIGINT, seen BIGINT", key=("word",))
    assert difference(job(table=wider), PUBLISH, old, new) == [(b"a", b"1"), (b"b", None), (b"gone", None)]


def test_a_topic_keyed_otherwise_than_the_table_holds_events_and_needs_no_difference() -> None:
    assert is_keyed(job())
    assert not is_keyed(job(Publish(COUNTS, key=Text("n"), value=Text("word"))))
    assert not is_keyed(job(None))


def test_a_keyed_topic_gets_what_differs_from_what_was_published_and_not_from_where_the_table_stood(
    tmp_path: Path, old: TableAtVersion
) -> None:
    published = written(tmp_path / "published", {"word": ["a", "b"], "n": [1, 1]})
    new = written(tmp_path / "new", {"word": ["a", "b", "c"], "n": [1, 2, 3]})
    assert lacking(job(), PUBLISH, TopicHandover(published, old, new)) == [(b"b", b"2"), (b"c", b"3")]


def test_a_topic_of_events_gets_what_the_old_release_had_left_to_write(tmp_path: Path, old: TableAtVersion) -> None:
    events = Publish(COUNTS, key=Text("n"), value=Text("word"))
    published = written(tmp_path / "published", {"word": ["a", "b"], "n": [1, 2]})
    new = written(tmp_path / "new", {"word": ["z"], "n": [9]})
    assert lacking(job(events), events, TopicHandover(published, old, new)) == [(b"3", b"gone")]
    assert lacking(job(events), events, TopicHandover(old, old, new)) == []
