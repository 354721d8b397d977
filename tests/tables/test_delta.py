"""The one writer of a release's table: a batch is there once, whoever wrote it, and of two writers one is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema

from platform_core.errors import BatchFailed
from platform_core.storage import Place
from platform_core.tables.delta import TableWriter

ROWS = pa.table({"word": ["a"], "n": pa.array([1], pa.int64())})
SCHEMA = Schema.from_arrow(ROWS.schema)
KEYS = pytest.mark.parametrize("key", [(), ("word",)], ids=["appended", "keyed"])


def output(place: Path, key: tuple[str, ...] = ()) -> TableWriter:
    return TableWriter(Place(str(place / "table")), SCHEMA, "words@v1", key)


class Overtaken(TableWriter):
    """Between its look at the table and its commit, another process of the same release commits the batch."""

    by: TableWriter
    batch: int

    def _shaped(self, rows: pa.Table) -> pa.Table:
        self.by.write(ROWS, self.batch, "{}")
        return super()._shaped(rows)


def count(made: TableWriter) -> int:
    return made.place.table().to_pyarrow_table().num_rows


@KEYS
def test_a_batch_that_the_table_has_is_not_written_again(tmp_path: Path, key: tuple[str, ...]) -> None:
    version = output(tmp_path, key).write(ROWS, 0, "{}")
    again = output(tmp_path, key)
    assert again.write(ROWS, 0, "{}") == version
    assert count(again) == 1


def test_a_batch_without_rows_moves_the_position_all_the_same(tmp_path: Path) -> None:
    made = output(tmp_path)
    made.write(ROWS.slice(0, 0), 4, "{}")
    assert (made.applied(), count(made)) == (4, 0)


@KEYS
def test_of_two_writers_of_one_release_the_second_to_commit_a_batch_is_refused(
    tmp_path: Path, key: tuple[str, ...]
) -> None:
    first = output(tmp_path, key)
    first.write(ROWS.slice(0, 0), 0, "{}")
    second = Overtaken(first.place, SCHEMA, first.app, key)
    second.by, second.batch = first, 1
    with pytest.raises(BatchFailed, match="batch 1 of words@v1 was not committed"):
        second.write(ROWS, 1, "{}")
    assert count(first) == 1
