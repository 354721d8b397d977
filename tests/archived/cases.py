"""Jobs and records that touch all by which the platform decides rows; tests/archived/rows.json keeps what they leave.

The three main jobs are those of the archive of 186ad77, so that a change of a job is none of the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_core.declare import (
    Format,
    Json,
    Lookup,
    Publish,
    RowRule,
    Stream,
    StreamingJob,
    Table,
    Text,
    Topic,
)
from platform_core.testing import BATCH, END, QUIET, Step, at, clock, record
from tests.stack.running import job_in

ORDERS = Topic(
    name="orders",
    value="user STRING NOT NULL, amount DECIMAL(10,2), ordered_at TIMESTAMP, tags ARRAY<STRING>",
    key="user",
    event_time="ordered_at",
)
PEOPLE = Topic(name="people", value="name STRING, joined DATE", key="user", tombstones=True)
NOTES = Topic(name="notes", value="note STRING", format=Format.TEXT, key="user")
BLOBS = Topic(name="blobs", value="blob BINARY", format=Format.BYTES)
SUMS = Topic(name="sums", value="amount DECIMAL(10,2), at TIMESTAMP, tags STRING", key="user")
LENGTHS = Topic(name="lengths", value="bytes STRING", format=Format.TEXT, key="record", compacted=True)


@dataclass(frozen=True)
class Case:
    job: StreamingJob
    script: list[Step]


def cases(archived: Path) -> dict[str, Callable[[], Case]]:
    """By name; `archived` is the code of the archive."""
    main = {"stock_stats": _trades, "clickstream": _clicks, "word_count": _lines}
    of_archive = {name: _of(archived, name, script) for name, script in main.items()}
    return {
        **of_archive,
        "ordered": _ordered,
        "greeted": _greeted,
        "noted": _noted,
        "weighed": _weighed,
        "packed": _packed,
    }


def _of(archived: Path, name: str, script: Callable[[Mapping[str, Topic]], Iterator[Step]]) -> Callable[[], Case]:
    def case() -> Case:
        job = job_in(archived, name)
        topics = {topic.name.removeprefix("frozen-"): topic for topic in job.topics}
        return Case(job, list(script(topics)))

    return case


def _trades(topics: Mapping[str, Topic]) -> Iterator[Step]:
    stocks = topics["stocks"]

    def trade(second: float, **fields: Any) -> Step:
        value = {"type": "ASK", "ticker": "MMM", "price": "10.5", "size": 1} | fields
        return record(stocks, key=value["ticker"], value=value, second=second)

    for second in range(12):
        yield trade(second, ticker="MMM" if second % 3 else "IBM", price=f"{10 + second % 5}.123456")
        yield trade(second + 0.5, type="BID", price="1")
        if second % 4 == 3:
            yield BATCH
    yield trade(5, price="0")  # refused by a rule
    yield trade(5, type="OTHER")
    yield trade(5, ticker=None)
    yield record(stocks, key="MMM", value=b"{", second=5)
    yield record(stocks, key=None, value={"type": "ASK", "ticker": "MMM", "price": "1"}, second=5)
    yield record(stocks, key="MMM", value=b"\xff", second=5)
    yield record(stocks, key="MMM", value=None, second=5)
    yield from (QUIET, trade(40), QUIET, trade(2), trade(31), trade(28), END)  # late; in time; for some windows


def _clicks(topics: Mapping[str, Topic]) -> Iterator[Step]:
    views, searches = topics["clicks.pages.views"], topics["clicks.search"]
    profiles = topics["clicks.user.profile"]
    for user in (1, 2):
        person = {"user_id": user, "user_name": f"u{user}", "zipcode": "1", "interests": ["a", "b"]}
        yield record(profiles, key=user, value=person, second=0)
    for second in range(1, 9):
        user = second % 3 + 1
        yield record(searches, key=user, value={"user_id": user, "search_terms": f"s{second}"}, second=second)
        yield record(views, key=user, value={"user_id": user, "page": f"/{second}"}, second=second + 1)
        if second % 3 == 0:
            yield BATCH
    yield record(profiles, key=1, value={"user_id": 1, "user_name": "new"}, second=10)
    yield record(profiles, key=2, value=None, second=10)
    for user in (1, 2):
        yield record(views, key=user, value={"user_id": user, "page": "/later"}, second=11)
    yield from (QUIET, record(views, key=1, value={"user_id": 1, "page": "/late"}, second=2), END)


def _lines(topics: Mapping[str, Topic]) -> Iterator[Step]:
    lines = topics["wordcount-input"]
    for line in ("the quick brown fox", "été naïve été", "Fox  fox; 42 the"):
        yield record(lines, value=line)
        yield BATCH
    yield record(lines, value=b"\xff\xfe")
    yield record(lines, value="")
    yield record(lines, value=None)


def _ordered() -> Case:
    """Event time is a field: a late record is told by itself. The newest record of a key wins; values of all kinds."""
    rules = (RowRule("amount is not negative", "amount >= 0"),)

    def newest(orders: DataFrame) -> DataFrame:
        return orders.select(
            "user", "amount", F.col("event_time").alias("at"), F.to_json("tags").alias("tags"), "record"
        )

    job = StreamingJob(
        name="ordered",
        inputs={"orders": Stream(ORDERS, lateness="10 seconds", rules=rules)},
        transform=newest,
        output=Table(
            name="ordered", schema="user STRING, amount DECIMAL(10,2), at TIMESTAMP, tags STRING", key=("user",)
        ),
        publish=Publish(SUMS, key=Text("user"), value=Json(("amount", "at", "tags"))),
    )

    def order(second: float, made: float, user: str | None = "ann", **fields: Any) -> Step:
        value = {"user": user, "amount": "1.10", "ordered_at": at(made), "tags": ["x"]} | fields
        return record(ORDERS, key=user, value=value, second=second)

    script = [
        *(order(1, 1), order(2, 1, amount="2.555"), order(2, 2, user="bob", tags=None), BATCH),
        *(
            order(13, 3, user="eve"),
            order(13, 2.999, user="late"),
            order(5, 400, user="soon"),
            order(5, 200_000, user="far"),
        ),
        *(order(6, 6, amount="-1"), order(6, 6, amount=None, user="nil"), order(6, 6, ordered_at=None, user="none")),
        *(order(6, 6, user=None), record(ORDERS, key="x", value=b'{"user": 1}', second=6), order(0, 0), END),
    ]
    return Case(job, script)


def _greeted() -> Case:
    """A lookup as of each row's time: versions, tombstones, one that comes while the row waits, and none."""
    people = Lookup(PEOPLE, on="user", at="at", takes=("name", "joined"), otherwise={"name": "?"}, wait="2 seconds")

    def rows(orders: DataFrame) -> DataFrame:
        return orders.select("user", "amount", F.col("event_time").alias("at"))

    job = StreamingJob(
        name="greeted",
        inputs={"orders": Stream(ORDERS, lateness="5 seconds"), "people": people},
        transform=rows,
        output=Table(
            name="greeted", schema="user STRING, amount DECIMAL(10,2), at TIMESTAMP, name STRING, joined DATE"
        ),
    )

    def order(user: str, second: float) -> Step:
        value = {"user": user, "amount": "1", "ordered_at": at(second)}
        return record(ORDERS, key=user, value=value, second=second)

    def person(user: str, name: str | None, second: float) -> Step:
        value = None if name is None else {"name": name, "joined": "2024-02-29"}
        return record(PEOPLE, key=user, value=value, second=second)

    script = [
        *(person("ann", "Ann", 1), order("ann", 0), order("ann", 1), order("ann", 2), order("bob", 2), BATCH),
        *(person("bob", "Bob", 2), person("ann", "Anna", 3), order("ann", 3), order("ann", 2.5), BATCH),
        *(person("ann", None, 5), order("ann", 5), order("ann", 4.9), QUIET, order("zoe", 20), clock(60), END),
        record(PEOPLE, key="ann", value=b"[", second=61),
    ]
    return Case(job, script)


def _noted() -> Case:
    """Text in windows of a stream whose record time is the event time: the watermark decides what is late."""

    def counted(notes: DataFrame) -> DataFrame:
        found = notes.groupBy("key", F.window("event_time", "5 seconds")).agg(F.collect_set("note").alias("notes"))
        return found.select("key", F.col("window.start").alias("begins"), F.sort_array("notes").alias("notes"))

    job = StreamingJob(
        name="noted",
        inputs={"notes": Stream(NOTES, lateness="3 seconds")},
        transform=counted,
        output=Table(name="noted", schema="key STRING, begins TIMESTAMP, notes ARRAY<STRING>"),
        publish=Publish(
            Topic(name="out", value="notes ARRAY<STRING>"), key=Json(("key", "begins")), value=Json(("notes",))
        ),
    )

    def note(user: str | None, text: str | bytes, second: float) -> Step:
        return record(NOTES, key=user, value=text, second=second)

    script = [
        *(note("a", "one", 1), note("b", "two", 2), note("a", "", 3), note(None, "nobody", 3), note("a", b"\xff", 3)),
        *(BATCH, note("a", "three", 9), QUIET, note("a", "in time", 6), note("a", "too late", 1), QUIET),
        *(note("c", "far", 30), clock(40), END),
    ]
    return Case(job, script)


def _weighed() -> Case:
    """Bytes as they come, appended by coordinates, without any clock."""

    def sizes(blobs: DataFrame) -> DataFrame:
        place = F.concat_ws("-", "record.partition", "record.offset").alias("place")
        return blobs.select(place, F.length("blob").cast("string").alias("bytes"), F.hex("blob").alias("hex"))

    job = StreamingJob(
        name="weighed",
        inputs={"blobs": Stream(BLOBS)},
        transform=sizes,
        output=Table(name="weighed", schema="place STRING, bytes STRING, hex STRING", key=("place",)),
        publish=Publish(LENGTHS, key=Text("place"), value=Text("bytes")),
    )
    blobs = [record(BLOBS, key=b"\xff", value=value, partition=0) for value in (b"\xff\x00", b"", b"abc", None)]
    return Case(job, [*blobs[:2], BATCH, *blobs[2:]])


def _packed() -> Case:
    """Published JSON of what is no plain text or number: bytes, times without a zone, and times within others."""

    def packed(orders: DataFrame) -> DataFrame:
        moments = F.array("event_time").alias("moments")
        local = F.col("event_time").cast("timestamp_ntz").alias("local")
        return orders.select("user", F.encode("user", "utf-8").alias("raw"), local, moments)

    job = StreamingJob(
        name="packed",
        inputs={"orders": Stream(ORDERS)},
        transform=packed,
        output=Table(
            name="packed",
            schema="user STRING, raw BINARY, local TIMESTAMP_NTZ, moments ARRAY<TIMESTAMP>",
            key=("user",),
        ),
        publish=Publish(
            Topic(name="packed", value="raw BINARY, local TIMESTAMP_NTZ, moments ARRAY<TIMESTAMP>", key="user"),
            key=Text("user"),
            value=Json(("raw", "local", "moments")),
        ),
    )
    value = {"user": "ann", "amount": "1", "ordered_at": at(1.5)}
    return Case(job, [record(ORDERS, key="ann", value=value, second=2)])
