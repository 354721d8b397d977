"""A comparison of many differences, and the next one, which reads only what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_core.compare import pairs
from tests.compare.tables import Tables, changed, counts, many, stat


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def test_when_every_row_differs_all_are_counted_slice_by_slice(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "SLICE_ROWS", 1000)
    rows = many(6000)
    found = tables.of(rows, [{**row, "trade_count": row["trade_count"] + 5} for row in rows])
    assert counts(found) == (0, 0, 6000)
    assert changed(found) == {"trade_count": 6000}
    assert [column.largest for column in found.columns] == [5.0, None]
    assert len(found.examples) == 20


def test_differences_beyond_the_list_are_counted_all_the_same(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "LISTED", 100)
    found = tables.of(many(300), [])
    assert counts(found) == (300, 0, 0)
    assert found.unlisted == 200


# the next comparison


def test_the_next_comparison_reads_new_files_alone_and_finds_the_same(tables: Tables) -> None:
    rows = many(3000)
    tables.write(1, rows)
    tables.write(2, rows[:-1])
    first = tables.compare(tables.side(1), tables.side(2))
    assert (first.files_read, counts(first)) == (2, (1, 0, 0))
    again = tables.compare(tables.side(1), tables.side(2))
    assert (again.files_read, again.parts_paired) == (0, 0)
    assert again.examples == first.examples
    assert again.counts == first.counts
    tables.write(2, [rows[-1], stat("NEW")])
    healed = tables.compare(tables.side(1), tables.side(2))
    assert (healed.files_read, counts(healed)) == (1, (0, 1, 0))


def test_the_next_comparison_asks_anew_when_it_is_asked_something_else(tables: Tables) -> None:
    left, right = tables.write(1, [stat("A", price="1")]), tables.write(2, [stat("A", price="2")])
    assert tables.compare(left, right).unexplained == 1
    assert tables.compare(left, right, expect={"avg_price": "changes"}).unexplained == 0
    assert tables.compare(left, right).unexplained == 1


def test_a_difference_that_was_healed_in_a_merge_is_forgotten(tables: Tables) -> None:
    left = tables.write(1, many(100))
    tables.write(2, [*many(99), stat("T9", second=9, count=0)])
    assert counts(tables.compare(left, tables.side(2))) == (0, 0, 1)
    tables.write(2, many(100), mode="overwrite")
    assert tables.compare(left, tables.side(2)).same


def test_what_is_kept_is_small_and_left_whole(tables: Tables) -> None:
    tables.of(many(100), many(90))
    left = sorted(path.suffix for path in (tables.folder / "kept").rglob("*") if path.is_file())
    assert left == [".parquet"] * 4
