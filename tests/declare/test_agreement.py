"""What declarations say of each other is held against each other."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

import ingest.topics
from analytics.daily_prices.table import daily_prices
from ingest.topics import STOCKS, STOCKSTATS_OUTPUT
from platform_core.declare import Expect, Json, Publish, StreamingJob, Suite, Text
from platform_core.declare.agreement import Declared, disagreements
from platform_core.declare.discover import load_daily_tables, load_jobs, load_suites, load_topics
from platform_core.errors import DeclarationError
from platform_core.settings import ROOT
from quality.stock_stats import stock_stats as suite
from streaming_jobs.stock_stats.job import stock_stats


def told(*jobs: StreamingJob, suites: tuple[Suite, ...] = (), daily: bool = False) -> list[tuple[str, str]]:
    tables = {daily_prices.name: daily_prices} if daily else {}
    known = {str(number): job for number, job in enumerate(jobs)}
    return list(disagreements(Declared(known, tables, {one.table: one for one in suites})))


def test_the_tree_agrees_with_itself() -> None:
    assert list(disagreements(Declared(load_jobs(ROOT), load_daily_tables(ROOT), load_suites(ROOT)))) == []


def test_two_may_not_write_one_output() -> None:
    assert told(stock_stats, stock_stats) == [
        ("tables", "table 'stock_stats' is the output of 2 declarations. Give each its own."),
        ("topics", "topic 'stockstats-output' is the output of 2 declarations. Give each its own."),
    ]
    job = replace(stock_stats, output=replace(stock_stats.output, name=daily_prices.name))
    assert told(job, daily=True)[0][1].startswith("table 'daily_prices' is the output of 2")


def test_a_topic_is_declared_as_it_is_published() -> None:
    topic = replace(STOCKSTATS_OUTPUT, value=STOCKSTATS_OUTPUT.value.replace("trade_count BIGINT", "trades BIGINT"))
    (publish,) = stock_stats.publishes
    job = replace(stock_stats, publish=replace(publish, topic=topic))
    here = "publish.topic 'stockstats-output'.value"
    assert told(job) == [
        ("job stock_stats", f"{here}: column 'trade_count' is declared no such column, and published bigint."),
        ("job stock_stats", f"{here}: column 'trades' is declared bigint, and published no such column."),
    ]


def test_text_and_chosen_columns_are_published_as_they_are_chosen() -> None:
    topic = replace(STOCKSTATS_OUTPUT, value="ticker STRING")
    for value in (Json(("ticker",)), Text("ticker")):
        assert told(replace(stock_stats, publish=Publish(topic, key=Text("ticker"), value=value))) == []


def test_a_suite_speaks_of_columns_that_are_there() -> None:
    wrong = replace(
        suite,
        newest_by="ticker",
        expectations=(
            Expect("a_pair", "expect_column_pair_values_to_be_equal", {"column_A": "price", "column_B": "ticker"}),
        ),
    )
    newest, named = told(stock_stats, suites=(wrong,))
    assert newest == ("suite of stock_stats", "newest_by: 'ticker' is to be a TIMESTAMP of the table, came string.")
    assert named[1].startswith("expectation 'a_pair': 'price' is not a column; choose from avg_price, ")
    assert told(stock_stats, suites=(replace(suite, table="stok"),)) == [
        ("suite of stok", "table: there is no table 'stok'; declared are stock_stats.")
    ]


def test_a_topic_is_declared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module: ModuleType = ingest.topics
    monkeypatch.setattr(module, "TRADES", STOCKS, raising=False)
    assert load_topics()["stocks"] == STOCKS, "another name of the same value"
    monkeypatch.setattr(module, "TRADES", replace(STOCKS, partitions=7))
    with pytest.raises(DeclarationError, match=r"TRADES declares topic 'stocks' again, otherwise"):
        load_topics()
