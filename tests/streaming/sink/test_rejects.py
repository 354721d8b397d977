"""Refused records: kept with coordinates, and a limit that stops the job before it drops its input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from platform_core.control.position import Position
from platform_core.errors import RejectLimitExceeded
from platform_core.storage import Place
from platform_core.streaming.batch.metrics import BatchMetrics
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.sink.rejects import Limit, Reject, Rejects

BAD = Reject("stocks", 2, 4711, 1_740_830_400_123, b"MMM", b"{", "not JSON", size=1)
RELEASE = "stock_stats@v1"


def batch(number: int, rejects: list[Reject]) -> Batch:
    return Batch(position=Position(RELEASE, number, {}), measures=BatchMetrics(rejects=rejects))


def bad(count: int, first: int = 4711) -> list[Reject]:
    return [replace(BAD, offset=first + place) for place in reversed(range(count))]


def test_over_the_limit_the_job_stops_and_says_where_what_and_what_to_do() -> None:
    with pytest.raises(RejectLimitExceeded) as stopped:
        Limit(0.5).check(RELEASE, 100, bad(51))
    assert str(stopped.value).startswith(
        "stock_stats v1 stopped at stocks[2]@4711: 51 of 100 records rejected (not JSON), limit 50%."
    )
    assert "raise reject_limit" in stopped.value.remedy


def test_exactly_the_limit_is_within_it() -> None:
    Limit(0.5).check(RELEASE, 100, bad(50))


def test_a_handful_of_rejects_never_stops_a_job() -> None:
    Limit(0.01).check(RELEASE, 19, bad(19))


def test_rejects_of_former_batches_count_while_they_are_among_the_newest_thousand() -> None:
    limit = Limit(0.5)
    limit.check(RELEASE, 40, bad(19))
    with pytest.raises(RejectLimitExceeded, match="39 of 60"):
        limit.check(RELEASE, 20, bad(20))


def test_what_is_older_than_a_thousand_records_is_forgotten() -> None:
    limit = Limit(0.5)
    limit.check(RELEASE, 900, bad(400))
    limit.check(RELEASE, 1000, [])
    limit.check(RELEASE, 100, bad(40))


def test_good_records_of_long_ago_do_not_hide_a_producer_that_broke_now() -> None:
    limit = Limit(0.5)
    limit.check(RELEASE, 1_000_000, [])
    with pytest.raises(RejectLimitExceeded, match="1000 of 1000"):
        limit.check(RELEASE, 1000, bad(1000))


def test_a_reject_is_kept_with_its_coordinates_bytes_and_reason(tmp_path: Path) -> None:
    Rejects(Place(str(tmp_path / "r")), RELEASE).commit(batch(3, [BAD]))
    (row,) = DeltaTable(str(tmp_path / "r")).to_pyarrow_table().to_pylist()
    assert (row["topic"], row["partition"], row["offset"]) == ("stocks", 2, 4711)
    assert (row["key"], row["value"], row["reason"]) == (b"MMM", b"{", "not JSON")
    assert (row["release"], row["batch"]) == (RELEASE, 3)
    assert row["record_timestamp"].timestamp() == 1_740_830_400.123


def test_a_repeated_batch_rejects_nothing_again_and_another_release_does(tmp_path: Path) -> None:
    for release in (RELEASE, RELEASE, "stock_stats@v2"):
        Rejects(Place(str(tmp_path / "r")), release).commit(batch(3, [BAD]))
    assert DeltaTable(str(tmp_path / "r")).to_pyarrow_table()["release"].to_pylist().count(RELEASE) == 1
    assert DeltaTable(str(tmp_path / "r")).to_pyarrow_table().num_rows == 2


def test_batches_without_rejects_leave_no_commit(tmp_path: Path) -> None:
    rejects = Rejects(Place(str(tmp_path / "r")), RELEASE)
    rejects.commit(batch(0, []))
    rejects.commit(batch(1, [BAD]))
    rejects.commit(batch(2, []))
    assert DeltaTable(str(tmp_path / "r")).version() == 1


def test_a_value_too_large_for_a_metric_is_read_again_by_its_coordinates(tmp_path: Path) -> None:
    class Log:
        def values(self, rejects: list[Reject]) -> list[bytes | None]:
            return [b"{" * 10 for reject in rejects if reject.offset == 1]

    cut = replace(BAD, offset=1, size=10)
    Rejects(Place(str(tmp_path / "r")), RELEASE, Log()).commit(batch(0, [cut, BAD]))
    rows = DeltaTable(str(tmp_path / "r")).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [row["value"] for row in rows] == [b"{" * 10, b"{"]
