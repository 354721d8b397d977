"""Differences between two runs of one job in other batches are explained, all of them; a bug among them is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ingest.topics import PAGE_VIEWS, SEARCHES, STOCKS, USER_PROFILES
from platform_core.compare import Comparison, Side, compare, recomputed
from platform_core.compare.explain import LATE, NOT_YET_DUE, DeclaredClocks, neighbourhood, not_yet_due, taken
from platform_core.compare.late import explained, told_apart
from platform_core.compare.recomputed import Recomputation, Texts
from platform_core.control.position import Position
from platform_core.declare import StreamingJob
from platform_core.names import PART, ReleaseId
from platform_core.release.declared import declared
from platform_core.settings import ROOT, Settings
from platform_core.storage import Place
from platform_core.testing import BATCH, QUIET, Record, record
from platform_core.testing.script import records_of
from platform_core.testing.stage import Stage
from platform_core.testing.topics import ScriptTopics
from streaming_jobs.clickstream.job import clickstream
from streaming_jobs.stock_stats.job import stock_stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]


def trades(seed: int, count: int) -> list[Record]:
    """A second each, of three tickers; some up to 25 seconds late."""
    random = Random(seed)
    found: list[Record] = []
    for second in range(count):
        ticker = random.choice(("MMM", "ABT", "ACN"))
        value = {"type": "ASK", "ticker": ticker, "price": f"{second + 1}.0", "size": 100}
        late = random.choice((0, 0, 0, 0, 8, 12, 16, 25))
        found.append(record(STOCKS, key=ticker, value=value, second=second - late))
    return found


def clicks(seed: int, count: int) -> list[Record]:
    """Views of two users, each after a search; profiles that change; some of all of them late."""
    random = Random(seed)
    found: list[Record] = []
    for second in range(count):
        user, late = random.choice((1, 2)), random.choice((0, 0, 0, 4, 7, 12))
        topic, value = random.choice(
            (
                (PAGE_VIEWS, {"user_id": user, "page": f"/{second}"}),
                (SEARCHES, {"user_id": user, "search_terms": f"t{second}"}),
                (USER_PROFILES, {"user_id": user, "user_name": f"n{second}", "zipcode": "1", "interests": ["a"]}),
            )
        )
        found.append(record(topic, key=str(user), value=value, second=second - late))
    return found


def cut(records: Sequence[Record], size: int, mark: Any = BATCH) -> list[Any]:
    return [step for at, one in enumerate(records, 1) for step in ([one, mark] if at % size == 0 else [one])]


@dataclass
class Run:
    """A job's table after a script, and where each of its batches stood."""

    uri: str
    positions: list[Position]

    def side(self, number: int) -> Side:
        version = DeltaTable(self.uri).version()
        return Side(f"run@v{number}", Place(self.uri), version, self.positions[-1])


class Lab:
    def __init__(self, spark: SparkSession, folder: Path, job: StreamingJob, records: Sequence[Record]) -> None:
        self.spark, self.folder, self.job = spark, folder, job
        self.topics = ScriptTopics(job, folder / "all")
        self.topics.append(records_of(records))

    def run(self, name: str, script: Sequence[Any]) -> Run:
        settings = Settings(home=self.folder / name, root=ROOT)
        result = Stage(spark=self.spark, job=self.job, settings=settings).perform(script)
        positions = [outcome.position for outcome in result.batches]
        return Run(settings.storage.table(ReleaseId(self.job.name, 1)).uri, positions)

    def compare(self, left: Run, right: Run, explained: bool = True) -> Comparison:
        return compare(
            left.side(1),
            right.side(2),
            self.job.output.key,
            folder=self.folder / "kept",
            explain=(lambda rows: self._explain(rows, left, right)) if explained else None,
        )

    def _explain(self, rows: pa.Table, left: Run, right: Run) -> Mapping[str, Sequence[int]]:
        due = not_yet_due(rows, DeclaredClocks.of(declared(self.job)), left.positions[-1], right.positions[-1])
        span = neighbourhood(rows)
        assert span is not None
        batches = {
            side: taken([Position("", -1, {}), *run.positions], run.positions[-1].offsets, span)
            for side, run in (("left", left), ("right", right))
        }
        records = told_apart(self.topics.between(self.spark, {}, self.topics.end(0)), batches)
        zoned = rows.cast(pa.schema([_zoned(field) for field in rows.schema]))
        return {NOT_YET_DUE: due, LATE: explained(self.job, records.cache(), self.spark.createDataFrame(zoned))}


def _zoned(field: pa.Field) -> pa.Field:
    return pa.field(field.name, pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field


@pytest.mark.parametrize("way", ["windows", "spans", "keys"])
def test_trades_that_one_run_refused_explain_every_difference(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    only(monkeypatch, way)
    records = trades(1, 90)
    lab = Lab(spark, tmp_path, stock_stats, records)
    small, large = lab.run("small", cut(records, 5, QUIET)), lab.run("large", cut(records, 30, QUIET))
    found = lab.compare(small, large)
    assert found.differing > 0
    assert found.explained == {LATE: found.differing}
    assert found.unexplained == 0


def test_a_bug_in_a_row_that_a_late_trade_touched_stays_unexplained(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, stock_stats, records := trades(3, 60))
    small, large = lab.run("small", cut(records, 5, QUIET)), lab.run("large", cut(records, 30, QUIET))
    late = next(one for one in lab.compare(small, large).examples if one.because == LATE and one.kind == "changed")
    count_one_more(large, tuple(late.key.values()))
    found = lab.compare(small, large)
    assert [one.key for one in found.examples if not one.because] == [late.key]
    assert found.unexplained == 1


def test_where_too_much_was_late_to_compute_each_row_a_bug_in_the_others_stays_unexplained(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "keys")
    value = {"type": "ASK", "ticker": "AAP", "price": "1.0", "size": 100}
    records = trades(3, 60)
    records.insert(31, record(STOCKS, key="AAP", value=value, second=30))  # nothing late of that one
    lab = Lab(spark, tmp_path, stock_stats, records)
    small, large = lab.run("small", cut(records, 5, QUIET)), lab.run("large", cut(records, 30, QUIET))
    assert lab.compare(small, large).unexplained == 0
    alone = min(key for row in DeltaTable(large.uri).to_pyarrow_table().to_pylist() if (key := _key(row))[0] == "AAP")
    count_one_more(large, alone)
    found = lab.compare(small, large)
    assert [tuple(one.key.values()) for one in found.examples if not one.because] == [alone]
    assert found.unexplained == 1


def only(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Rows are computed in this way alone."""
    nothing: Callable[[Recomputation, str], set[Texts]] = lambda asked, side: {("unknown", asked.names[0], side)}  # noqa: E731
    other = "_in_spans" if way == "windows" else "_in_windows"
    monkeypatch.setattr(recomputed, other, nothing)
    monkeypatch.setattr(recomputed, "MOST_SPANS", 0 if way == "keys" else 60)


def count_one_more(run: Run, key: tuple[str | None, ...]) -> None:
    rows = DeltaTable(run.uri).to_pyarrow_table()
    wrong = [_key(row) == key for row in rows.to_pylist()]
    counts = [count + seen for count, seen in zip(rows["trade_count"].to_pylist(), wrong, strict=True)]
    other = rows.set_column(rows.schema.get_field_index("trade_count"), "trade_count", pa.array(counts))
    write_deltalake(run.uri, other, mode="overwrite", partition_by=[PART])
    write_deltalake(run.uri, other, mode="overwrite", partition_by=[PART])


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["ticker"], f"{row['window_start']:%Y-%m-%d %H:%M:%S}Z"


@pytest.mark.parametrize("seed", [1, 2])
def test_clicks_that_one_run_refused_or_that_are_not_due_explain_every_difference(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    records = clicks(seed, 150)
    lab = Lab(spark, tmp_path, clickstream, records)
    small, large = lab.run("small", cut(records, 5, QUIET)), lab.run("large", cut(records, 50))
    found = lab.compare(small, large)
    assert found.differing > 0
    assert [one for one in found.examples if not one.because] == []
    assert found.unexplained == 0
    assert set(found.explained) <= {LATE, NOT_YET_DUE}


def test_rows_that_wait_for_a_clock_are_not_yet_due(spark: SparkSession, tmp_path: Path) -> None:
    on_time = [record(PAGE_VIEWS, key="1", value={"user_id": 1, "page": f"/{at}"}, second=at) for at in range(30)]
    lab = Lab(spark, tmp_path, clickstream, on_time)
    further, behind = lab.run("further", cut(on_time, 3, QUIET)), lab.run("behind", cut(on_time, 30))
    found = lab.compare(further, behind)
    assert found.explained == ({NOT_YET_DUE: found.differing} if found.differing else {})
    assert found.counts["only right"].found == 0
    assert found.unexplained == 0


def test_a_job_without_a_clock_has_nothing_late() -> None:
    from streaming_jobs.word_count.job import word_count

    assert not DeclaredClocks.of(declared(word_count)).may_be_late
    assert DeclaredClocks.of(declared(stock_stats)) == DeclaredClocks(
        final=False, clocked=True, watermarked=True, wait_ms=None
    )
    assert DeclaredClocks.of(declared(clickstream)) == DeclaredClocks(
        final=True, clocked=True, watermarked=True, wait_ms=1000
    )
