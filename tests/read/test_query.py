"""SQL over live tables: what it answers, what it refuses."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.read import sql
from platform_core.settings import Settings
from tests.read.conftest import NOON, Publish, stats, write

pytestmark = pytest.mark.stack
KEY = ("ticker", "window_start")


def test_rows_come_typed_and_without_the_physical_column(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM", windows=1), KEY)
    answer = sql(settings, "select * from stock_stats")
    assert answer.columns == ("ticker", "window_start", "trade_count", "avg_price")
    assert answer.types == ("VARCHAR", "TIMESTAMP WITH TIME ZONE", "BIGINT", "DECIMAL(18,6)")
    assert answer.rows == [("MMM", NOON, 0, Decimal("5000.000001"))]
    assert answer.sources["stock_stats"].release == str(release)


def test_a_query_sees_the_live_release_alone(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("OLD"), KEY)
    publish("stock_stats", stats("NEW"), KEY, number=2)
    assert sql(settings, "select distinct ticker from stock_stats").rows == [("NEW",)]


def test_tables_can_be_joined(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", "ABT", windows=1), KEY)
    publish("names", pa.table({"ticker": ["MMM"], "name": ["3M"]}), ("ticker",))
    answer = sql(settings, "select name, trade_count from names join stock_stats using (ticker)")
    assert answer.rows == [("3M", 0)]
    assert set(answer.sources) == {"names", "stock_stats"}


def test_rows_are_bounded_and_it_says_so(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", windows=10), KEY)
    assert len(sql(settings, "select * from stock_stats", limit=4).rows) == 4
    assert sql(settings, "select * from stock_stats", limit=4).truncated
    assert not sql(settings, "select * from stock_stats", limit=30).truncated


def test_time_is_bounded(settings: Settings) -> None:
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"did not end within 0\.3 s"):
        sql(settings, "select sum(a.range * b.range) from range(10000000) a, range(1000000) b", seconds=0.3)
    assert time.monotonic() - began < 5


def test_memory_is_bounded(settings: Settings) -> None:
    with pytest.raises(UsageError, match="more than 1GB of memory"):
        sql(settings, "select list(range) from range(1000000000)", seconds=60)


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/etc/*')",
        "select * from read_parquet('{home}/warehouse/**/*.parquet')",
        "copy (select 1) to '{home}/x.csv'",
        "copy stock_stats to '{file}'",
        "with x as (copy (select 1) to '{file}') select 1",
        "attach '{home}/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_paths = ['/etc/passwd']",
        "drop view stock_stats",
        "create table x as select 1",
        "insert into stock_stats values (1)",
        "with x as (delete from stock_stats returning *) select * from x",
        "export database '{home}/x'",
        "call enable_logging()",
        "pragma enable_profiling",
        "explain analyze copy stock_stats to '{file}'",
        "select 1; select 2",
        "select * from query",
        "select * from tables",
        "",
        "selct 1",
    ],
)
def test_whatever_is_no_select_of_live_tables_is_refused(settings: Settings, publish: Publish, query: str) -> None:
    release = publish("stock_stats", stats("MMM"), KEY)
    file = next(Path(settings.storage.table(release).uri).rglob("*.parquet"))
    before = (file.read_bytes(), sorted(path.name for path in settings.home.iterdir()))
    with pytest.raises(UsageError):
        sql(settings, query.format(home=settings.home, file=file))
    assert (file.read_bytes(), sorted(path.name for path in settings.home.iterdir())) == before


def test_an_unknown_table_is_answered_with_those_that_are(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    publish("word_count", pa.table({"word": ["a"], "count": [1]}), ("word",))
    with pytest.raises(UsageError, match=r"stock_stat does not exist.* Tables: .*stock_stats, .*word_count, "):
        sql(settings, "select * from stock_stat")


def test_show_tables_lists_what_has_rows(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    publish("idle", None)
    assert sql(settings, "show tables").rows == [("stock_stats",)]


def test_a_table_that_was_never_written_is_named(settings: Settings, publish: Publish) -> None:
    publish("idle", None)
    with pytest.raises(ServiceUnavailable, match=r"Table 'idle': its live release .* has written nothing yet"):
        sql(settings, "select * from idle")


def test_a_table_without_rows_has_its_columns(settings: Settings, publish: Publish) -> None:
    nested = pa.table(
        {
            "at": pa.array([], pa.timestamp("us", "UTC")),
            "tags": pa.array([], pa.list_(pa.string())),
            "by": pa.array([], pa.map_(pa.string(), pa.int64())),
            "x": pa.array([], pa.struct([("y", pa.decimal128(18, 6))])),
        }
    )
    publish("empty", nested)
    answer = sql(settings, "select * from empty")
    assert (answer.columns, answer.rows) == (("at", "tags", "by", "x"), [])
    assert answer.types == (
        "TIMESTAMP WITH TIME ZONE",
        "VARCHAR[]",
        "MAP(VARCHAR, BIGINT)",
        "STRUCT(y DECIMAL(18,6))",
    )


def test_times_without_a_zone_in_the_file_are_utc(settings: Settings, publish: Publish) -> None:
    """As Spark writes them, in INT96."""
    release = publish("stock_stats", stats("MMM", windows=1), KEY)
    file = next(Path(settings.storage.table(release).uri).rglob("*.parquet"))
    import pyarrow.parquet as pq

    pq.write_table(stats("MMM", windows=1).drop([("_part")]), file, use_deprecated_int96_timestamps=True)
    assert sql(settings, "select window_start from stock_stats").rows == [(NOON,)]


def test_values_that_are_odd_in_folder_names_come_back(settings: Settings, publish: Publish) -> None:
    rows = stats("MMM", windows=1).set_column(4, "_part", pa.array(["a b:c/é'%41"]))
    publish("stock_stats", rows, KEY)
    assert sql(settings, "select count(*) from stock_stats").rows == [(1,)]


def test_a_newer_batch_is_seen_by_the_next_query(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM"), KEY)
    write(settings, release, stats("ABT"), batch=1)
    assert sql(settings, "select count(*) from stock_stats").rows == [(6,)]


def test_what_a_job_refused_is_a_table_too(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM"), KEY)
    rejects = pa.table({"topic": ["stocks"], "reason": ["null key"], "value": [b"raw"]})
    write_deltalake(settings.storage.rejects(release.job).uri, rejects)
    assert sql(settings, f"select reason, value from {release.job}_rejects").rows == [("null key", b"raw")]
