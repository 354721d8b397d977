"""A warehouse may be named by a URI: what is written there is read, compared and removed as from a folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from platform_core.compare import Side, compare
from platform_core.control.position import Position
from platform_core.declare import Table
from platform_core.names import ReleaseId
from platform_core.read.engine import Engine
from platform_core.read.tables import LiveTable
from platform_core.settings import Settings, load
from platform_core.storage import Place, Storage
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import table_schema
from tests.compare.tables import Far

TABLE = Table(name="words", schema="word STRING, n BIGINT", key=("word",))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    warehouse = (tmp_path / "a warehouse").as_uri()
    return load(environment={"WEIR_HOME": str(tmp_path / "home"), "WEIR_WAREHOUSE": warehouse})


def written(storage: Storage, number: int, *counts: int) -> Place:
    """The release's table, a batch for each count of the one word."""
    release = ReleaseId("words", number)
    output = TableWriter(storage.table(release), table_schema(TABLE), str(release), TABLE.key)
    for batch, count in enumerate(counts):
        rows = pa.table({"word": ["a"], "n": [count]})
        output.write(rows, batch, Position(str(release), batch, {"lines": {0: batch}}).to_json())
    return output.place


def test_it_is_written_and_read_with_its_positions(settings: Settings, tmp_path: Path) -> None:
    place = written(settings.storage, 1, 1, 2)
    assert (tmp_path / "a warehouse" / "words" / "v1").is_dir()
    for where in (place, Far(place.here.as_uri())):
        table = LiveTable("words", where)
        assert table.arrow().to_pylist() == [{"word": "a", "n": 2}]
        position = table.position()
        assert position is not None
        assert position.offsets == {"lines": {0: 1}}
        with Engine([table]) as engine:
            assert engine.answer("select n from words", limit=9, seconds=10).rows == [(2,)]


def test_releases_in_it_are_compared(settings: Settings, tmp_path: Path) -> None:
    sides = [Side(f"words@v{number}", written(settings.storage, number, 1, number), 2) for number in (1, 2)]
    found = compare(sides[0], sides[1], TABLE.key, folder=tmp_path / "kept")
    assert [count.found for count in found.counts.values()] == [0, 0, 1]


def test_it_is_removed(settings: Settings) -> None:
    place = written(settings.storage, 1, 1)
    assert place.remove()
    assert not place.has_table()
