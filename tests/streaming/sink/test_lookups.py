"""Lookups as of a row's own time, and the rows that wait for them; no Spark is needed for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from platform_core.control.position import Position
from platform_core.declare import Lookup, Table
from platform_core.storage import Place
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.sink.lookups import LookupTable, Waiting, split
from platform_core.testing import at
from tests.testing.jobs import NAMES

TIME = pa.timestamp("us", "UTC")
VERSION = pa.schema(
    [("key", pa.string()), ("at", TIME), ("offset", pa.int64()), ("deleted", pa.bool_()), ("name", pa.string())]
)
NAMED = Lookup(NAMES, on="user", at="at", takes=("name",), otherwise={"name": "?", "n": -1})
TABLE = Table(name="greeted", schema="user STRING, n BIGINT, at TIMESTAMP, name STRING")


def version(key: str, name: str | None, second: float, offset: int = 0) -> dict[str, Any]:
    return {"key": key, "at": at(second), "offset": offset, "deleted": name is None, "name": name}


def versions(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=VERSION)


def views(*rows: tuple[str, int, float]) -> pa.Table:
    found = [{"user": user, "n": n, "at": at(second)} for user, n, second in rows]
    return pa.Table.from_pylist(found, schema=pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", TIME)]))


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


@pytest.fixture
def names(tmp_path: Path, duck: duckdb.DuckDBPyConnection) -> LookupTable:
    return opened(tmp_path, duck)


def opened(folder: Path, duck: duckdb.DuckDBPyConnection) -> LookupTable:
    return LookupTable("names", NAMED, Place(str(folder / "names")), "job@v1", TABLE, duck)


def brought(names: LookupTable, number: int, *rows: dict[str, Any]) -> None:
    names.commit(Batch(position=Position("job@v1", number, {}), changes=views(), lookups={"names": versions(*rows)}))


def joined(names: LookupTable, *rows: tuple[str, int, float]) -> list[tuple[int, str]]:
    return sorted((row["n"], row["name"]) for row in names.joined(views(*rows)).to_pylist())


def test_the_newest_version_not_later_than_the_row_counts(names: LookupTable) -> None:
    brought(names, 0, version("ann", "Ann", 5), version("ann", "Anna", 7))
    assert joined(names, ("ann", 1, 5), ("ann", 2, 6.999), ("ann", 3, 7)) == [(1, "Ann"), (2, "Ann"), (3, "Anna")]


def test_before_the_first_version_and_after_a_deletion_the_declared_values_stand(names: LookupTable) -> None:
    brought(names, 0, version("ann", "Ann", 5), version("ann", None, 7))
    assert joined(names, ("ann", 1, 4.999), ("ann", 2, 7), ("bob", 3, 6)) == [(-1, "?"), (-1, "?"), (-1, "?")]


def test_of_two_versions_of_one_moment_the_later_offset_counts(names: LookupTable) -> None:
    brought(names, 0, version("ann", "new", 5, offset=2), version("ann", "old", 5, offset=1))
    assert joined(names, ("ann", 1, 5)) == [(1, "new")]


def test_a_version_of_the_past_that_comes_later_counts_from_then_on(names: LookupTable) -> None:
    brought(names, 0, version("ann", "Anna", 7))
    brought(names, 1, version("ann", "Ann", 5))
    assert joined(names, ("ann", 1, 6), ("ann", 2, 8)) == [(1, "Ann"), (2, "Anna")]


def test_a_repeated_batch_adds_nothing_and_a_restart_knows_all(
    tmp_path: Path, names: LookupTable, duck: duckdb.DuckDBPyConnection
) -> None:
    brought(names, 0, version("ann", "Ann", 5))
    again = opened(tmp_path, duck)
    brought(again, 0, version("ann", "wrong", 5, offset=9))
    assert joined(again, ("ann", 1, 6)) == [(1, "Ann")]


def test_a_row_with_two_rows_of_its_key_is_not_doubled(names: LookupTable) -> None:
    brought(names, 0, *(version("ann", f"v{n}", n) for n in range(5)))
    assert joined(names, ("ann", 1, 9), ("ann", 2, 9)) == [(1, "v4"), (2, "v4")]


def test_events_and_lookup_records_that_rode_together_are_told_apart() -> None:
    record = pa.array([None, {"key": "ann", "name": "Ann"}], pa.struct([("key", pa.string()), ("name", pa.string())]))
    both = pa.table({"user": ["bob", None], "_lookup_names": record})
    rows, found = split(both, {"names": NAMED})
    assert rows.to_pylist() == [{"user": "bob"}]
    assert found["names"].to_pylist() == [{"key": "ann", "name": "Ann"}]


WAITED = Lookup(NAMES, on="user", at="at", takes=("name",), wait="2 seconds")


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path / "waiting", TABLE, {"names": WAITED})


def ms(second: float) -> int:
    return int(at(second).timestamp() * 1000)


def test_a_row_is_released_once_the_clock_is_the_wait_past_it(waiting: Waiting) -> None:
    rows = views(("ann", 1, 5), ("bob", 2, 6))
    assert waiting.released(rows, ms(6.999), 0).num_rows == 0
    assert waiting.released(views(), ms(7), 1)["n"].to_pylist() == [1]
    assert waiting.released(views(), ms(60), 2)["n"].to_pylist() == [2]
    assert waiting.released(views(), ms(99), 3).num_rows == 0


def test_a_repeated_batch_releases_the_same_rows_again(waiting: Waiting) -> None:
    waiting.released(views(("ann", 1, 5)), ms(5), 0)
    first = waiting.released(views(("bob", 2, 6)), ms(7), 1)
    assert waiting.released(views(("bob", 2, 6)), ms(7), 1).equals(first)


def test_a_lookup_without_a_wait_holds_nothing(tmp_path: Path) -> None:
    rows = views(("ann", 1, 5))
    assert Waiting(tmp_path / "none", TABLE, {"names": NAMED}).released(rows, 0, 0) is rows
    assert not (tmp_path / "none").exists()
