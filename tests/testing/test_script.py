"""What the words of a script mean; no Spark is needed for it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from platform_core.errors import UsageError
from platform_core.testing import START, Record, at, clock, record
from platform_core.testing.topics import ScriptTopics
from tests.testing.jobs import NAMES, PURCHASES, REFUNDS, both, bought, totals


def test_a_dict_becomes_json_with_exact_decimals() -> None:
    made = record(PURCHASES, key="ann", value={"user": "Chloé", "amount": Decimal("0.10"), "of": [1, None, True]})
    assert made.value == '{"user": "Chloé", "amount": 0.10, "of": [1, null, true]}'.encode()


def test_a_time_in_a_value_is_written_as_iso_8601() -> None:
    assert record(PURCHASES, value={"at": at(1)}).value == b'{"at": "2025-03-01T12:00:01+00:00"}'


def test_text_becomes_utf_8_bytes_stay_and_none_is_a_tombstone() -> None:
    values = [record(NAMES, key=7, value=value).value for value in ("é", b"\xff", None)]
    assert values == [b"\xc3\xa9", b"\xff", None]
    assert record(NAMES, key=7).key == b"7"


def test_seconds_count_from_the_scripts_start_and_moments_are_taken_as_they_are() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert record(PURCHASES, second=1.5).at == at(1.5)
    assert record(PURCHASES, second=moment).at == moment
    assert (clock(3).to, clock(moment).to) == (at(3), moment)
    assert at(0) == START


def test_a_key_stays_in_its_partition_and_offsets_rise_by_one(tmp_path: Path) -> None:
    rows = _placed(tmp_path, [bought("ann", 1, second=0), bought("bob", 2, second=0), bought("ann", 3, second=0)])
    ann = [(row["partition"], row["offset"]) for row in rows if row["key"] == b"ann"]
    assert ann == [(ann[0][0], 0), (ann[0][0], 1)]


def test_partition_and_offset_can_be_given_and_later_offsets_follow(tmp_path: Path) -> None:
    given = bought("ann", 1, second=0, partition=1, offset=41)
    rows = _placed(tmp_path, [given, bought("ann", 2, second=0, partition=1)])
    assert [(row["partition"], row["offset"]) for row in rows] == [(1, 41), (1, 42)]


def test_an_offset_that_falls_is_refused(tmp_path: Path) -> None:
    falling = [bought("ann", 1, second=0, partition=0, offset=5), bought("ann", 1, second=0, partition=0, offset=5)]
    with pytest.raises(UsageError, match=r"purchases\[0\]@5 in a script, the next there is 6"):
        _placed(tmp_path, falling)


def test_a_partition_that_the_topic_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match="partition 2, it has 2"):
        bought("ann", 1, second=0, partition=2)


def test_a_record_of_a_topic_that_is_no_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"topic 'refunds' in a script for job 'totals'.*inputs are purchases"):
        ScriptTopics(totals, tmp_path).append([record(REFUNDS, key="ann", value={})])


def test_a_batch_ends_where_its_records_end_in_every_topic(tmp_path: Path) -> None:
    topics = ScriptTopics(both, tmp_path)
    topics.append([bought("ann", 1, second=0, partition=0)])
    topics.append([record(REFUNDS, key="ann", value={}, partition=1)])
    assert topics.end(0) == {"purchases": {0: 1, 1: 0}, "refunds": {0: 0, 1: 0}}
    assert topics.end(1) == {"purchases": {0: 1, 1: 0}, "refunds": {0: 0, 1: 1}}


def _placed(folder: Path, records: list[Record]) -> list[dict[str, object]]:
    topics = ScriptTopics(totals, folder)
    topics.append(records)
    topics.show()
    return pq.read_table(folder / "000000.parquet").to_pylist()
