from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from platform_core.testing.matching import Candidates, Matching, Pending, unlike

NOTHING_PENDING = Pending(None, 0)


def once(*values: object) -> Candidates:
    return Candidates([(0, values)], {})


def test_equal_tables_do_not_differ_in_whatever_order() -> None:
    assert Matching([(0, ("a", 1)), (0, ("b", 2))], [once("b", 2), once("a", 1)], NOTHING_PENDING).differences() == []


def test_a_lost_row_a_doubled_one_and_a_changed_one_show() -> None:
    there = [(0, ("a", 1)), (0, ("a", 1)), (0, ("b", 3))]
    assert Matching(there, [once("a", 1), once("b", 2), once("c", 1)], NOTHING_PENDING).differences() == [
        "not in the batch: 2 rows, as ('a', 1)",
        "not in the batch: 2 rows, as ('b', 3)",
        "not in the table: 2 rows, as ('b', 2)",
        "not in the table: 2 rows, as ('c', 1)",
    ]


def test_a_row_may_read_only_as_it_was_known_in_its_batch() -> None:
    row = Candidates([(3, ("a", "old")), (7, ("a", "new"))], {})
    assert [batch for batch in range(10) if row.fits(batch, ("a", "old"))] == [3, 4, 5, 6]
    assert [batch for batch in range(10) if row.fits(batch, ("a", "new"))] == [7, 8, 9]
    assert row.fits(None, ("a", "new"))


def test_a_row_whose_time_the_clock_has_not_passed_may_be_missing() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    row = Candidates([(0, (noon,))], {"at": noon})
    passed = int(noon.timestamp() * 1000)
    assert Matching([], [row], Pending("at", passed)).differences() == []
    assert len(Matching([], [row], Pending("at", passed + 1)).differences()) == 1


def test_counts_of_records_are_compared_both_ways() -> None:
    assert unlike(Counter("aab"), Counter("abc"), "letters") == [
        "letters: too many: 1 rows, as 'a'",
        "letters: too few: 1 rows, as 'c'",
    ]
