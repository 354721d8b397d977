from __future__ import annotations

from typing import Any

import pytest

from ingest.topics import WORDCOUNT_INPUT
from streaming_jobs.word_count.job import count_words, word_count
from tests.streaming_jobs.conftest import Batch, TableOf


@pytest.fixture
def counts(batch: Batch, table_of: TableOf) -> Any:
    def of(*lines: str) -> dict[str, int]:
        return dict(table_of(count_words(batch(WORDCOUNT_INPUT, [{"line": line} for line in lines]))))  # pyright: ignore

    return of


def test_a_word_is_counted_over_all_lines(counts: Any) -> None:
    assert counts("to be or not", "to be") == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_case_makes_no_difference(counts: Any) -> None:
    assert counts("Stream STREAM stream", "ÉTÉ été") == {"stream": 3, "été": 2}


def test_the_word_the_is_not_counted_and_words_that_begin_with_it_are(counts: Any) -> None:
    assert counts("The theme of the THE other") == {"theme": 1, "of": 1, "other": 1}


def test_letters_of_every_script_belong_to_words(counts: Any) -> None:
    assert counts("été naïve", "Größe: 数据 данные") == {
        "été": 1,
        "naïve": 1,
        "größe": 1,
        "数据": 1,
        "данные": 1,
    }


def test_an_accent_written_as_a_mark_of_its_own_stays_in_its_word(counts: Any) -> None:
    assert counts("cafe\u0301 noir") == {"cafe\u0301": 1, "noir": 1}


def test_digits_and_underscores_are_word_characters(counts: Any) -> None:
    assert counts("v2 max_records=200") == {"v2": 1, "max_records": 1, "200": 1}


def test_runs_of_other_characters_leave_no_empty_words(counts: Any) -> None:
    assert counts("...one -- two!", "  ", "", "the") == {"one": 1, "two": 1}


def test_the_output_has_the_declared_columns(batch: Batch) -> None:
    frame = count_words(batch(WORDCOUNT_INPUT, []))
    assert frame.dtypes == [(column.name, column.sql) for column in word_count.output.columns]
