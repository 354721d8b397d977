"""A job's releases compared where both have stood: which pair, at which versions, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from platform_core.compare.releases import pair_of
from platform_core.compare.report import page
from platform_core.control import audit, comparisons, holds
from platform_core.control.position import TableVersion
from platform_core.control.store import ControlStore
from platform_core.cutover.gates import facts_of
from platform_core.cutover.model import Move
from platform_core.errors import ServiceUnavailable, UsageError
from tests.compare.paired import Job
from tests.compare.tables import stat
from tests.conftest import Database

pytestmark = pytest.mark.stack


@pytest.fixture
def job(postgres: Database, store: ControlStore, tmp_path: Path) -> Job:
    return Job(postgres.settings.model_copy(update={"home": tmp_path}), store)


def test_two_releases_are_compared_at_the_newest_offsets_at_which_both_stood(job: Job) -> None:
    job.release(1, "live")
    job.release(2, "following")
    for at, ticker in ((10, "A"), (20, "B"), (30, "C")):
        job.commit(1, [stat(ticker)], at=at)
    job.commit(2, [stat("A"), stat("B")], at=20)
    job.commit(2, [stat("D")], at=25)  # the live release never stood there
    outcome = job.compare()
    assert outcome.verdict.passed
    assert (outcome.found.left_version, outcome.found.right_version) == (1, 0)
    assert outcome.found.offsets == {"stocks": {0: 20}}


def test_two_releases_that_read_a_table_are_compared_where_they_had_read_the_same_of_it(
    job: Job, store: ControlStore
) -> None:
    v4, v5, v6 = ({"trades": TableVersion("trades@v1", version)} for version in (4, 5, 6))
    job.release(1, "live")
    job.release(2, "following")
    for tables, ticker in ((v4, "A"), (v5, "B"), (v6, "C")):
        job.commit(1, [stat(ticker)], at=10, tables=tables)
    job.commit(2, [stat("A"), stat("B")], at=10, tables=v5)
    outcome = job.compare()
    assert outcome.verdict.passed
    assert (outcome.found.left_version, outcome.found.right_version) == (1, 0)
    shown = page(outcome.found, outcome.verdict, datetime(2026, 1, 31, tzinfo=UTC))
    assert "both at stocks[0]@10, trades at trades@v1 version 5" in shown
    facts = facts_of(store, Move("stats", job.id(1), job.id(2)))
    assert facts.behind_seconds is not None
    assert outcome.kept.position.tables == v5


def test_a_verdict_is_kept_with_its_reasons_and_figures_and_without_rows(job: Job, store: ControlStore) -> None:
    job.release(1, "live")
    job.release(2, "following")
    job.commit(1, [stat("SECRET")], at=10)
    job.commit(2, [stat("SECRET", price="11")], at=10)
    outcome = job.compare()
    newest = comparisons.newest(store, job.id(1), job.id(2))
    assert newest == comparisons.newest(store, job.id(2), job.id(1)) == outcome.kept
    assert newest is not None
    assert (newest.passed, newest.reasons) == (False, ("avg_price differs in 1 key, by 1 at most",))
    assert newest.figures["rows_left"] == 1
    assert newest.position.offsets == {"stocks": {0: 10}}
    assert "SECRET" not in str(newest.figures)
    assert [one.id for one in comparisons.of_job(store, job.name)] == [newest.id]


def test_the_audit_tells_a_verdict_once_and_again_when_it_changes(job: Job, store: ControlStore) -> None:
    job.release(1, "live")
    job.release(2, "following")
    job.commit(1, [stat("A")], at=10)
    job.commit(2, [stat("A")], at=10)
    job.compare()
    job.compare()
    job.commit(1, [stat("B")], at=20)
    job.commit(2, [], at=20)
    job.compare()
    told = [one.detail["passed"] for one in audit.read(store, str(job.id(2)), 10) if one.action == "compare"]
    assert told == [False, True]


def test_what_the_new_release_declares_is_expected(job: Job) -> None:
    job.release(1, "live", trade_count="changes")  # of an earlier change: it says nothing about this one
    job.release(2, "following", avg_price="changes")
    job.commit(1, [stat("A", price="1", count=1)], at=10)
    job.commit(2, [stat("A", price="2", count=2)], at=10)
    assert job.compare().verdict.reasons == ("trade_count differs in 1 key, by 1 at most",)
    assert job.compare(expect={"trade_count": "within 1"}).verdict.passed


def test_both_versions_are_held_while_they_are_read_and_no_longer(job: Job, store: ControlStore) -> None:
    job.release(1, "live")
    job.release(2, "following")
    job.commit(1, [stat("A")], at=10)
    job.commit(1, [], at=20)
    job.commit(2, [stat("B")], at=10)
    seen: list[list[int] | None] = []

    def look(rows: pa.Table) -> Mapping[str, Sequence[int]]:
        seen.extend(holds.held_versions(store, job.id(number)) for number in (1, 2))
        raise KeyError(rows.num_rows)

    with pytest.raises(KeyError):
        job.compare(explained_by=lambda *_: look)
    assert seen == [[0], [0]]
    assert [holds.held_versions(store, job.id(number)) for number in (1, 2)] == [[], []]


def test_after_a_cutover_the_standby_is_compared_the_same_way_round(job: Job) -> None:
    job.release(1, "standby")
    job.release(2, "live", avg_price="changes")
    job.commit(1, [stat("A", price="1")], at=10)
    job.commit(2, [stat("A", price="2")], at=10)
    outcome = job.compare()
    assert (outcome.found.left, outcome.found.right) == (str(job.id(1)), str(job.id(2)))
    assert outcome.verdict.passed


def test_a_partition_that_one_of_them_does_not_know_yet_counts_as_empty(job: Job) -> None:
    job.release(1, "live")
    job.release(2, "following")
    job.commit(1, [stat("A")], at=10, p1=0)
    job.commit(2, [stat("A")], at=10)
    assert job.compare().verdict.passed


def test_another_key_is_a_difference_of_its_own(job: Job) -> None:
    job.release(1, "live")
    job.release(2, "following", key=("ticker",))
    for number in (1, 2):
        job.commit(number, [stat("A")], at=10)
    assert job.compare().verdict.reasons == ("the key was (ticker, window_start) and is (ticker)",)


def test_what_cannot_be_paired_is_refused_with_what_to_do(job: Job, store: ControlStore) -> None:
    with pytest.raises(UsageError, match="has no live release"):
        pair_of(store, job.name)
    job.release(1, "live")
    with pytest.raises(UsageError, match="has no release to compare with"):
        pair_of(store, job.name)
    job.release(2, "replaying")
    with pytest.raises(ServiceUnavailable, match="have stood at no position together yet"):
        pair_of(store, job.name)
    with pytest.raises(UsageError, match="v9 is not there"):
        pair_of(store, job.name, job.id(9))
