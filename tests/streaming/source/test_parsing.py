"""Which records a transform sees, which are refused and why, and by which clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_core.declare import Format, Lookup, RowRule, Stream, Topic
from platform_core.streaming.source.parsing import (
    admitted,
    job_delay,
    parsed,
    parsed_at_rest,
    qualified,
    watermark_delay,
)
from platform_core.streaming.transform.query_plan import computed
from platform_core.testing import at, record
from platform_core.testing.script import Record
from platform_core.testing.topics import ScriptTopics
from tests.testing import jobs

PEOPLE = Topic(name="people", value="name STRING NOT NULL, age INT", key="id", partitions=1)
BORN = Topic(name="born", value="name STRING, at TIMESTAMP", event_time="at", partitions=1)
LINES = Topic(name="lines", value="line STRING", format=Format.TEXT, partitions=1)
BLOBS = Topic(name="blobs", value="blob BINARY", format=Format.BYTES, partitions=1)
ADULTS = Stream(PEOPLE, rules=(RowRule("adult", "age >= 18"), RowRule("short", "length(name) < 9")))


def person(value: Any, key: Any = "1", **more: Any) -> Record:
    return record(PEOPLE, key=key, value=value, **more)


def taken(spark: SparkSession, tmp_path: Any, part: Stream | Lookup, *records: Record) -> list[tuple[Any, Any]]:
    """Why each record is refused, or None, and whether it is late."""
    topics = ScriptTopics(
        jobs.job("j", lambda purchases: purchases, "a INT", inputs={"purchases": Stream(part.topic)}), tmp_path
    )
    topics.append(records)
    found = parsed(topics.between(spark, {}, topics.end(0)), part).orderBy("offset")
    return [(row["reason"], row["late"]) for row in found.select("reason", "late").collect()]


def test_each_record_is_refused_for_its_first_reason(spark: SparkSession, tmp_path: Any) -> None:
    cases: list[tuple[Record, str | None]] = [
        (person({"name": "Ann", "age": 30}), None),
        (person({"name": "Ann", "age": 30, "more": [1]}), None),
        (person({"name": "Ann", "age": 30}, key=None), "null key: id is needed"),
        (person(None), "empty value"),
        (person(b""), "empty value"),
        (person(b"\xff{"), "not UTF-8"),
        (person({"name": "Ann", "age": 30}, key=b"\xff1"), "key not UTF-8"),
        (person({"name": "Ann", "age": 17}, key=b"\xff1"), "rule adult"),
        (person(b"{"), "not JSON of the declared shape (name string, age int)"),
        (person(b"[1]"), "not JSON of the declared shape (name string, age int)"),
        (person(b'"text"'), "not JSON of the declared shape (name string, age int)"),
        (person({"name": "Ann", "age": "old"}), "not JSON of the declared shape (name string, age int)"),
        (person({"age": 30}), "missing field: name"),
        (person({"name": None, "age": 30}), "missing field: name"),
        (person({"name": "Ann", "age": 17}), "rule adult"),
        (person({"name": "Ann"}), "rule adult"),
        (person({"name": "Maximilian", "age": 30}), "rule short"),
        (
            person({"name": "Ann", "age": 30}, second=datetime.now(UTC) + timedelta(days=2)),
            "event time more than 1 day ahead",
        ),
        (person({"name": "Ann", "age": 30}, second=datetime.now(UTC) + timedelta(hours=23)), None),
    ]
    found = taken(spark, tmp_path, ADULTS, *(made for made, _ in cases))
    assert [reason for reason, _ in found] == [reason for _, reason in cases]


def test_a_field_as_event_time_makes_records_late_and_early_by_their_own_timestamp(
    spark: SparkSession, tmp_path: Any
) -> None:
    part = Stream(BORN, lateness="10 seconds", future="1 hour")
    made = [record(BORN, value={"at": at(second)}, second=20) for second in (10, 9.999, 3620, 3620.001)]
    found = taken(spark, tmp_path, part, *made, record(BORN, value={"name": "Ann"}))
    early = "event time more than 1 hour ahead"
    assert found == [(None, False), (None, True), (None, False), (early, False), ("no event time", False)]


def test_a_record_that_is_late_by_its_own_timestamp_is_refused_where_the_input_says_so(
    spark: SparkSession, tmp_path: Any
) -> None:
    part = Stream(BORN, lateness="10 seconds", late="rejected", rules=(RowRule("named", "name <> ''"),))
    made = [record(BORN, value={"name": "Ann", "at": at(second)}, second=20) for second in (10, 9.999, -3e6)]
    found = taken(spark, tmp_path, part, *made, record(BORN, value={"name": "", "at": at(0)}, second=20))
    late = ("more than 10 seconds late", False)
    assert found == [(None, False), late, late, ("rule named", False)]


def test_a_record_at_rest_is_parsed_once_whatever_is_asked_of_it(spark: SparkSession, tmp_path: Any) -> None:
    topics = ScriptTopics(jobs.totals, tmp_path)
    topics.append([jobs.bought("ann", 3, second=4)])
    # not the script's own: rows that stand in a plan are worked out in it
    topics.between(spark, {}, topics.end(0)).write.parquet(str(tmp_path / "at_rest"))
    records = spark.read.parquet(str(tmp_path / "at_rest"))

    def parses(frame: Any) -> int:
        return str(frame._jdf.queryExecution().optimizedPlan()).count("from_json")

    for asked in ("reason is null", "reason is not null", "reason is null and v.amount > 1"):
        assert parses(parsed(records, jobs.BOUGHT).where(asked)) > 1, "no barrier is needed any more"
        assert parses(parsed_at_rest(records, jobs.BOUGHT).where(asked)) == 1
    taken = admitted(parsed_at_rest(records, jobs.BOUGHT), jobs.BOUGHT)
    assert parses(taken.unionByName(taken)) == 2
    assert parses(computed(jobs.totals, records)) == 1


def test_text_and_bytes_are_taken_whole(spark: SparkSession, tmp_path: Any) -> None:
    lines = taken(spark, tmp_path / "l", Stream(LINES), *(record(LINES, value=v) for v in ("{", b"\xff", b"", None)))
    assert [reason for reason, _ in lines] == [None, "not UTF-8", None, "empty value"]
    blobs = taken(spark, tmp_path / "b", Stream(BLOBS), *(record(BLOBS, value=v) for v in (b"\xff", None)))
    assert [reason for reason, _ in blobs] == [None, "empty value"]


def test_a_key_that_nobody_declared_is_null_where_it_is_not_text(spark: SparkSession, tmp_path: Any) -> None:
    part = Stream(LINES)
    topics = ScriptTopics(
        jobs.job("j", lambda purchases: purchases, "a INT", inputs={"purchases": Stream(part.topic)}), tmp_path
    )
    topics.append(record(LINES, key=key, value="{") for key in (b"\xc3\xa9", b"\xff", None))
    seen = admitted(parsed(topics.between(spark, {}, topics.end(0)), part), part).select("key").toArrow()
    assert seen["key"].to_pylist() == ["é", None, None]


def test_a_tombstone_is_a_value_of_a_lookup_that_declares_them(spark: SparkSession, tmp_path: Any) -> None:
    names = Lookup(jobs.NAMES, on="user", at="at", takes=("name",))
    kept = replace(names, topic=replace(jobs.NAMES, partitions=1))
    gone = record(kept.topic, key="ann", value=None)
    assert taken(spark, tmp_path, kept, gone) == [(None, False)]


def test_a_transform_sees_the_values_columns_and_the_platforms_three(spark: SparkSession, tmp_path: Any) -> None:
    topics = ScriptTopics(jobs.totals, tmp_path)
    topics.append([jobs.bought("ann", 3, second=4, partition=1, offset=7)])
    (row,) = admitted(parsed(topics.between(spark, {}, topics.end(0)), jobs.BOUGHT), jobs.BOUGHT).toArrow().to_pylist()
    coordinates = {"topic": "purchases", "partition": 1, "offset": 7, "timestamp": at(4)}
    assert row == {"user": "ann", "amount": 3, "event_time": at(4), "key": "ann", "record": coordinates}


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        ("price > 0", "v.price > 0"),
        ("size(tags) > 0 AND size > 1", "SIZE(v.tags) > 0 AND v.size > 1"),
        ("type IN ('ASK', 'BID')", "v.type IN ('ASK', 'BID')"),
        ("other > price", "other > v.price"),
    ],
)
def test_a_rule_names_the_values_columns(rule: str, seen: str) -> None:
    assert qualified(rule, {"price", "tags", "size", "type"}) == seen


def test_the_most_patient_input_sets_the_pace_of_the_one_clock() -> None:
    patient = replace(jobs.BOUGHT, lateness="1 minute")
    assert job_delay(replace(jobs.both, inputs={"purchases": patient, "refunds": jobs.PAID_BACK})) == timedelta(
        minutes=1
    )
    assert job_delay(jobs.newest) is None


def test_where_each_record_is_judged_by_itself_the_watermark_stays_well_behind() -> None:
    assert watermark_delay(Stream(BORN, lateness="10 seconds")) == timedelta(seconds=70)
    assert watermark_delay(Stream(BORN, lateness="1 hour")) == timedelta(hours=2)
    assert watermark_delay(Stream(BORN)) is None
