"""A value of another kind than a field takes is refused with its place, what came, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from analytics.daily_prices.table import daily_prices
from ingest.topics import HEARTBEATS, STOCKS, USER_PROFILES
from platform_core.declare import (
    Bytes,
    DailyTable,
    Expect,
    Format,
    Json,
    Lookup,
    Publish,
    Raw,
    RowRule,
    Stream,
    StreamingJob,
    Table,
    Text,
    Topic,
)
from platform_core.errors import DeclarationError
from quality.stock_stats import stock_stats as suite
from streaming_jobs.clickstream.job import PROFILES, clickstream

TABLE = Table(name="prices", schema="ticker STRING, at TIMESTAMP")


def same(trades: DataFrame) -> DataFrame:
    return trades


def job(**other: Any) -> StreamingJob:
    given: dict[str, Any] = {"inputs": {"trades": Stream(STOCKS)}, "transform": same, "output": TABLE}
    return StreamingJob(name="prices", **{**given, **other})


def looked_up(**other: Any) -> StreamingJob:
    return replace(clickstream, inputs={**clickstream.inputs, "profiles": replace(PROFILES, **other)})


def some(kind: Any, *values: Any, **more: Any) -> Callable[[], Any]:
    return lambda: kind(*values, **more)


MEANT = "Did you mean STOCKS, of topic 'stocks', from ingest/topics.py?"
CASES: list[tuple[Callable[[], Any], str]] = [
    (some(Stream, "stokcs"), f"Stream('stokcs'): it takes a Topic, came the str 'stokcs'. {MEANT}"),
    (some(Stream, "STOCK"), f"Stream('STOCK'): it takes a Topic, came the str 'STOCK'. {MEANT}"),
    (some(Stream, None), "Stream(None): it takes a Topic, came nothing. Import one from ingest/topics.py: WORDCOUNT_"),
    (some(Raw, "stocks"), f"Raw('stocks'): it takes a Topic, came the str 'stocks'. {MEANT}"),
    (
        some(Lookup, "stocks", on="a", at="b", takes=("c",)),
        "Lookup('stocks'): it takes a Topic, came the str 'stocks'.",
    ),
    (some(Publish, "stocks", key=Text("a")), "Publish('stocks'): it takes a Topic, came the str 'stocks'."),
    (
        some(Publish, STOCKS, key="a"),
        "Publish('stocks').key: it takes Text or Json or Bytes or Long or Double, came the str 'a'. Write key=Text(",
    ),
    (some(Json, "ab"), "Json.columns: it takes a tuple of str, came the str 'ab'. Write Json(('ticker',))."),
    (some(Stream, STOCKS, lateness=10), "Stream('stocks').lateness: 10 is not a duration. Write a whole number and a"),
    (some(Stream, STOCKS, late="kept"), "Stream('stocks').late: 'kept' is not one of 'dropped', 'rejected'."),
    (
        some(Stream, STOCKS, lateness="3 hours", late="rejected"),
        "Stream('stocks').late: no record of it says by itself that it is late. Give it a lateness, and its topic a",
    ),
    (some(Stream, HEARTBEATS, late="rejected"), "Stream('device.heartbeats').late: no record of it says by itself"),
    (
        some(Stream, STOCKS, rules=RowRule("a", "b")),
        "Stream('stocks').rules: it takes a tuple of RowRule, came a RowRule.",
    ),
    (
        some(Lookup, USER_PROFILES, on="a", at="b", takes="zipcode"),
        "Lookup('clicks.user.profile').takes: it takes a tuple of str, came the str 'zipcode'. Write takes=('name',).",
    ),
    (some(looked_up, on="user"), "inputs['profiles'].on: 'user' is no such column of table 'user_activity'."),
    (some(looked_up, at="page"), "inputs['profiles'].at: 'page' is string of table 'user_activity'. Name a TIMESTAMP"),
    (some(looked_up, on="zipcode"), "inputs['profiles'].on: 'zipcode' is a lookup's column of table 'user_activity'."),
    (
        some(Table, name="t", schema="a STRING", key="a"),
        "table 't'.key: it takes a tuple of str, came the str 'a'. Write key=('ticker',): a tuple, with its comma.",
    ),
    (
        some(Table, name="t", schema="a STRING", layout="a"),
        "table 't'.layout: it takes Hours or Days or Buckets or nothing",
    ),
    (some(Table, name="t", schema="a UUID"), "table 't'.schema: 'a UUID' is not a schema: column 'a' is of type UUID"),
    (some(Table, name="t", schema="a ARRAY<TIME>"), "column 'a' is of type TIME, which is none of ours"),
    (some(Table, name="t", schema=None), "table 't'.schema: None is not a schema"),
    (some(Topic, name="t", value="a STRING", format="json"), "topic 't'.format: it takes Format, came the str 'json'."),
    (some(Topic, name="t", value="a STRING", event_time="a"), "topic 't'.event_time: 'a' is string, not a timestamp."),
    (some(Topic, name="t", value="a STRING", personal="a"), "topic 't'.personal: it takes a tuple of str"),
    (some(Topic, name="t", value="a STRING", partitions="4"), "topic 't'.partitions: it takes int, came the str '4'."),
    (
        some(job, inputs=[Stream(STOCKS)]),
        "job 'prices'.inputs: it takes Mapping, came a list. Write {'trades': Stream(",
    ),
    (some(job, inputs={"trades": STOCKS}), "job 'prices'.inputs['trades']: it takes Input, came a Topic."),
    (some(job, output="prices"), "job 'prices'.output: it takes Table, came the str 'prices'."),
    (
        some(
            Lookup, USER_PROFILES, on="user_id", at="at", takes=("zipcode",), otherwise={"zipcode": ""}, required=True
        ),
        "Lookup('clicks.user.profile').required: no row is written where there is no record. Leave `otherwise` out",
    ),
    (some(Stream, STOCKS, nulls="drop"), "Stream('stocks').nulls: 'drop' is not one of 'reject', 'skip'."),
    (some(Topic, name="t", value="n INT", format=Format.LONG), "topic 't'.value: long is one BIGINT, came 'n INT'."),
    (some(job, publish=STOCKS), "job 'prices'.publish: it takes a tuple of Publish, came a Topic. Write Publish("),
    (
        some(job, publish=(Publish(STOCKS, key=Text("ticker")), Publish(STOCKS, key=Text("ticker")))),
        "job 'prices'.publish: topic 'stocks' twice.",
    ),
    (some(Publish, STOCKS, key=Text("ticker"), where=7), "Publish('stocks').where: it takes str or nothing, came the"),
    (
        some(job, publish=Publish(STOCKS, key=Text("ticker"), where="price >")),
        "job 'prices'.publish: Publish('stocks').where: 'price >' is no condition. Write SQL, as in",
    ),
    (
        some(job, publish=Publish(STOCKS, key=Text("ticker"), where="prize > 7")),
        "Publish('stocks').where: 'prize' is not a column of the table. Choose from",
    ),
    (
        some(job, publish=Publish(STOCKS, key=Text("ticker"), where="ticker = 'a' AND price / 2 > 7")),
        "where: 'price / 2' is no comparison of a column with a value, in \"ticker = 'a' AND price / 2 > 7\".",
    ),
    (
        some(job, publish=Publish(STOCKS, key=Text("ticker"), value=Bytes("ticker"))),
        "job 'prices'.publish: Bytes('ticker') takes a BINARY column, 'prices' has string. Write Text('ticker').",
    ),
    (
        some(job, publish=Publish(STOCKS, key=Text("none"))),
        "job 'prices'.publish: 'none' is not a column of table 'prices'. Choose from",
    ),
    (some(job, transform="same"), "job 'prices'.transform: it takes a function, came the str 'same'. Name it, without"),
    (some(job, emits="update"), "job 'prices'.emits: 'update' is not one of 'updates', 'final', None."),
    (some(job, state="ram"), "job 'prices'.state: 'ram' is not one of 'disk', 'memory'."),
    (some(job, reject_limit="50%"), "job 'prices'.reject_limit: it takes float or int, came the str '50%'."),
    (some(job, updates_every=1), "job 'prices'.updates_every: 1 is not a duration."),
    (some(replace, daily_prices, input=STOCKS), "daily table 'daily_prices'.input: it takes Stream, came a Topic."),
    (some(replace, daily_prices, since="2026-01-01"), "daily table 'daily_prices'.since: it takes date, came the str"),
    (some(replace, daily_prices, output="daily"), "daily table.output: it takes Table, came the str 'daily'."),
    (
        some(replace, suite, expectations=Expect("a", "expect_b", {})),
        "expectations: it takes a tuple of Expect, came a",
    ),
]


@pytest.mark.parametrize(("declares", "says"), CASES, ids=[says for _, says in CASES])
def test_it_is_refused_and_says_what_to_write(declares: Callable[[], Any], says: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        declares()
    assert says in str(raised.value)


def test_a_transform_may_have_arguments_of_its_own_with_defaults() -> None:
    def dear(trades: DataFrame, least: int = 100) -> DataFrame:
        return trades.where(f"price > {least}")

    assert job(transform=dear).transform is dear

    def asking(trades: DataFrame, least: int) -> DataFrame:
        return trades.limit(least)

    with pytest.raises(DeclarationError, match=r"it takes \['least', 'trades'\], the Stream inputs are \['trades'\]"):
        job(transform=asking)
    table = replace(daily_prices.output, name="daily")
    assert DailyTable(input=daily_prices.input, transform=dear, output=table, since=date(2026, 1, 1)).name == "daily"
    with pytest.raises(DeclarationError, match=r"transform: it takes \['trades', 'least'\]"):
        replace(daily_prices, transform=asking)


def test_types_are_read_by_every_name_that_they_have() -> None:
    table = Table(name="t", schema="a TEXT, b LONG, c NUMERIC(3,1), d ARRAY<STRUCT<x: INT>>")
    assert [column.sql for column in table.columns] == ["string", "bigint", "decimal(3,1)", "array<struct<x: int>>"]
