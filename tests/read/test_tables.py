"""Live tables as Arrow, pandas and Spark see them."""

from __future__ import annotations

import subprocess
import sys

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from platform_core.control import clients
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError
from platform_core.read import open_tables
from platform_core.settings import Settings
from tests.read.conftest import Publish, stats, write

pytestmark = pytest.mark.stack
COLUMNS = ["ticker", "window_start", "trade_count", "avg_price"]


def test_arrow_and_pandas_give_the_declared_columns(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", "ABT"))
    table = open_tables(settings).table("stock_stats")
    assert table.arrow().column_names == COLUMNS
    assert table.arrow(["ticker"], pc.field("ticker") == "ABT").to_pydict() == {"ticker": ["ABT"] * 3}
    assert list(table.pandas().columns) == COLUMNS
    with pytest.raises(UsageError, match="'stock_stats' has no column '_part'"):
        table.arrow(["_part"])


def test_a_table_that_is_open_stays_at_its_version(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM"))
    table = open_tables(settings).table("stock_stats")
    assert (table.version, table.arrow().num_rows) == (0, 3)
    write(settings, release, stats("ABT"), batch=1)
    assert (table.version, table.arrow().num_rows) == (0, 3)
    assert open_tables(settings).table("stock_stats").arrow().num_rows == 6


def test_the_position_is_that_of_the_version(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM"))
    write(settings, release, stats("ABT"), batch=1)
    position = open_tables(settings).table("stock_stats").position()
    assert position is not None
    assert (position.batch, position.offsets) == (1, {"stocks": {0: 101}})


def test_a_later_commit_does_not_move_an_open_tables_position(settings: Settings, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM"))
    table = open_tables(settings).table("stock_stats")
    assert table.version == 0
    write(settings, release, stats("ABT"), batch=1)
    position = table.position()
    assert position is not None
    assert position.batch == 0


def test_a_pinned_client_stays_while_the_others_move(settings: Settings, store: ControlStore, publish: Publish) -> None:
    first = publish("stock_stats", stats("MMM"))
    clients.bind(store, "month_end", "stock_stats", first, "ada")
    clients.bind(store, "screen", "stock_stats", None, "ada")
    second = publish("stock_stats", stats("MMM", "ABT"))
    assert open_tables(settings, client="month_end").table("stock_stats").release == first
    assert open_tables(settings, client="screen").table("stock_stats").release == second
    with pytest.raises(UsageError, match="There is no client 'months_end'"):
        open_tables(settings, client="months_end")


def test_all_tables_are_resolved_in_one_transaction(
    settings: Settings, store: ControlStore, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("stock_stats", stats("MMM"))
    publish("other", stats("MMM"))
    taken: list[object] = []
    transaction = store.transaction
    monkeypatch.setattr(store, "transaction", lambda: (taken.append(1), transaction())[1])
    assert {"other", "stock_stats"} <= set(open_tables(settings, store))
    assert len(taken) == 1


def test_spark_reads_the_pinned_version(settings: Settings, publish: Publish, spark: SparkSession) -> None:
    release = publish("stock_stats", stats("MMM"))
    table = open_tables(settings).table("stock_stats")
    assert table.version == 0
    write(settings, release, stats("ABT"), batch=1)
    frame = table.spark(spark)
    assert frame.columns == COLUMNS
    assert frame.count() == 3


def test_reading_starts_no_jvm_and_imports_nothing_slow() -> None:
    loaded = "import platform_core.read, sys; print(*(sys.modules.keys()))"
    names = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pyspark", "dagster", "great_expectations", "confluent_kafka", "pandas", "sqlglot"} & set(names)
