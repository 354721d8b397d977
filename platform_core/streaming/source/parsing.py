"""From a topic's bytes to a transform's input: parse, reject, set late records aside, set the clock.

Nothing is read twice for it: what is rejected leaves the batch as an observed metric, with coordinates and bytes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from platform_core.declare import Stream, StreamingJob, Topic
from platform_core.declare.inputs import Input, OfTopic
from platform_core.formats import codec
from platform_core.formats.codec import Fault

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

RAW_KEPT = (
    65_536  # of a rejected record's value; the rest is fetched by coordinates, so that no metric grows without bound
)
RECENT_MS = 60_000  # beyond the watermark's delay
INPUT = "input_"  # with an input's name: what is observed of it
AHEAD = "ahead_ms"  # of the batch's plan
USED_MS, REJECT, RECENT = "_used_ms", "_reject", "_recent_ms"
_MILLISECOND = timedelta(milliseconds=1)


def parsed(raw: DataFrame, part: OfTopic) -> DataFrame:
    """The records of the part's topic with `value`'s columns in a struct `v`, `event_time`, and why each is refused."""
    from pyspark.sql import functions as F

    topic = part.topic
    own = raw.where(F.col("topic") == topic.name) if "topic" in raw.columns else raw
    if part.verbatim:
        return _as_it_is(own)
    own = own.where(F.col("value").isNotNull()) if part.skips_nulls else own
    read = own.select("*", codec(topic.format).read(F.col("value"), topic.columns).alias("v"))
    read = read.select("*", _event_time(topic).alias("event_time"))
    read = read.select("*", _ahead_of_plan().alias(AHEAD))
    read = read.select("*", _refused(part).alias("reason"))
    return read.select("*", (F.col("reason").isNull() & _late(part)).alias("late"))


def parsed_at_rest(records: DataFrame, part: OfTopic) -> DataFrame:
    """The same for records that are read as a batch, where nothing observes them between parsing and what asks of it.

    Spark moves a filter on `reason` below the parsing, with all that `reason` is made of: every value is parsed some
    ten times then (measured: 11 to 25 microseconds a trade instead of 2.4). It moves none past an observation.
    """
    from pyspark.sql import functions as F

    # a name stands for one plan: two of the same in a query are an error
    return parsed(records, part).observe(f"at_rest_{uuid4().hex}", F.count(F.lit(1)).alias("records"))


def _as_it_is(records: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    timed = records.select("*", F.struct("value").alias("v"), F.col("timestamp").alias("event_time"))
    return timed.select("*", F.lit(None).cast("string").alias("reason"), F.lit(False).alias("late"))


def taken(records: DataFrame, name: str, part: Stream, delay: timedelta | None) -> DataFrame:
    """What a transform sees of the input `name`, from the records of all topics; observed."""
    return admitted(observed(parsed(records, part), INPUT + name, None if part.late_after is None else delay), part)


def observed(records: DataFrame, name: str, delay: timedelta | None = None) -> DataFrame:
    """The same records; counts, clock and rejects of the batch can be read when it has run.

    `delay` is how far the job's watermark stays behind its clock; None where it has none, or for a lookup.
    """
    from pyspark.sql import functions as F

    refused = F.col("reason").isNotNull()
    used = ~refused & ~F.col("late")
    reject = F.struct(
        "topic",
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("timestamp_ms"),
        "key",
        F.substring("value", 1, RAW_KEPT).alias("value"),
        F.length("value").alias("size"),
        "reason",
    )
    # lists are gathered without generated code: what goes into them is worked out before, with it
    told = records.select(
        "*", F.when(used, F.unix_millis("event_time")).alias(USED_MS), F.when(refused, reject).alias(REJECT)
    )
    told = told if delay is None else told.select("*", _recent(delay).alias(RECENT))
    return told.observe(
        name,
        F.count(F.lit(1)).alias("records"),
        F.count(F.when(used, 1)).alias("used"),
        F.count(F.when(F.col("late"), 1)).alias("late"),
        F.min(USED_MS).alias("oldest_ms"),
        F.max(USED_MS).alias("newest_ms"),
        F.max(F.unix_millis("timestamp")).alias("newest_record_ms"),
        F.collect_list(REJECT).alias("rejects"),
        *_behind(delay),
    )


def _behind(delay: timedelta | None) -> list[Expression]:
    """The event times that may be behind a live stream's watermark: those as far behind the batch's planned time as
    the watermark is, or a little further. Still older ones are only counted: a stream that catches up has nothing else,
    and hundreds of thousands of them in lists would fill the driver's memory."""
    from pyspark.sql import functions as F

    if delay is None:
        return []
    ancient = F.col(USED_MS).isNotNull() & (F.col(AHEAD) < -listed_ms(delay))
    return [F.collect_list(RECENT).alias("behind_ms"), F.count(F.when(ancient, 1)).alias("ancient")]


def _recent(delay: timedelta) -> Expression:
    from pyspark.sql import functions as F

    ahead = F.col(AHEAD)
    return F.when((ahead <= -(delay // _MILLISECOND)) & (ahead >= -listed_ms(delay)), F.col(USED_MS))


def listed_ms(delay: timedelta) -> int:
    """How far behind the batch's planned time event times are listed."""
    return delay // _MILLISECOND + RECENT_MS


def admitted(records: DataFrame, part: Stream) -> DataFrame:
    """What a transform sees: the value's columns, `event_time`, `key`, `record`.

    The key is text; bytes only where all is raw. One that the topic does not declare is null where it is not UTF-8: a
    string of other bytes would reach the table, and Arrow's readers fail at it.
    """
    from pyspark.sql import functions as F

    values = [F.col(f"v.{column.name}").alias(column.name) for column in part.topic.columns]
    own = [F.col("event_time")] if "event_time" not in {column.name for column in part.topic.columns} else []
    record = F.struct("topic", "partition", "offset", "timestamp").alias("record")
    kept = records.where(F.col("reason").isNull() & ~F.col("late"))
    text = F.col("key").cast("string")
    text = text if part.topic.key is not None else F.try_validate_utf8(text)
    key = F.col("key") if part.verbatim else text.alias("key")
    return kept.select(*values, *own, key, record)


def clocked(events: DataFrame, part: Input, delay: timedelta | None) -> DataFrame:
    """Without a lateness of its own an input has no clock, and nothing of it is late."""
    if part.late_after is None or delay is None:
        return events
    return events.withWatermark("event_time", f"{delay // _MILLISECOND} milliseconds")


def job_delay(job: StreamingJob) -> timedelta | None:
    """How far the one clock of all inputs stays behind the newest event of any: as the most patient of them asks.

    Each input by its own delay would be judged by the least patient: Spark takes the foremost watermark for all.
    """
    delays = [delay for part in job.transformed.values() if (delay := watermark_delay(part)) is not None]
    return max(delays, default=None)


def watermark_delay(part: Input) -> timedelta | None:
    """How far the watermark stays behind the newest event.

    Where event time is a field, late records were set aside one by one; the watermark then only closes windows and
    must drop nothing, so it stays behind by the disorder that partitions and batches add (measured: 30 s drop none).
    """
    if part.watermarked or part.late_after is None:
        return part.late_after
    return part.late_after + max(timedelta(minutes=1), part.late_after)


def _event_time(topic: Topic) -> Expression:
    from pyspark.sql import functions as F

    return F.col("timestamp") if topic.event_time is None else F.col(f"v.{topic.event_time}")


def _unreadable(topic: Topic) -> Expression:
    """Why a record cannot be read at all, or null. No reason ever quotes a value: values may be personal."""
    from pyspark.sql import functions as F

    value, form = F.col("value"), codec(topic.format)
    cases: list[Fault] = []
    if topic.key is not None:
        cases.append((F.col("key").isNull(), f"null key: {topic.key} is needed"))
    if not topic.tombstones:
        cases.append((form.is_empty(value), "empty value"))
    cases += form.unreadable(value, F.col("v"), topic.columns)
    cases += [
        (value.isNotNull() & F.col(f"v.{column.name}").isNull(), f"missing field: {column.name}")
        for column in topic.columns
        if column.required
    ]
    return _first(cases)


def _refused(part: OfTopic) -> Expression:
    from pyspark.sql import functions as F

    cases = [
        (F.col("event_time").isNull(), "no event time"),
        (
            _ahead(part.topic) > int(part.far_future.total_seconds() * 1000),
            f"event time more than {part.furthest} ahead",
        ),
    ]
    rules = [(~F.coalesce(_holds(part, rule.holds), F.lit(False)), f"rule {rule.name}") for rule in part.row_rules]
    return F.coalesce(_unreadable(part.topic), _first([*cases, *rules, *_torn_key(part.topic), *_too_late(part)]))


def _torn_key(topic: Topic) -> list[Fault]:
    """After all older reasons: what was refused before keys were looked into is refused for the same reason still."""
    from pyspark.sql import functions as F

    return [] if topic.key is None else [(~F.is_valid_utf8(F.col("key").cast("string")), "key not UTF-8")]


def _too_late(part: OfTopic) -> list[Fault]:
    return [] if part.refused_after is None else [(_late(part), f"more than {part.refused_after} late")]


def _ahead(topic: Topic) -> Expression:
    """How far ahead an event is: of the record's own timestamp where event time is a field, as every replay then
    decides the same; else of the batch's plan."""
    from pyspark.sql import functions as F

    return F.col(AHEAD) if topic.event_time is None else F.unix_millis("event_time") - F.unix_millis("timestamp")


def _ahead_of_plan() -> Expression:
    """Event time minus the batch's planned time, which a repeated batch keeps, in milliseconds.

    A plain current_timestamp() stands as a number in the code that Spark generates, in an array too: every batch is
    four other classes then, compiled and warmed up anew. A higher-order function is handed to that code as an object.
    With the lists' columns worked out before: 3.0 s of CPU for 200,000 trades instead of 4.1, after six such batches.
    """
    from pyspark.sql import functions as F

    planned = F.array(F.current_timestamp())
    return F.aggregate(planned, F.unix_millis("event_time"), lambda ahead, now: ahead - F.unix_millis(now))


def _holds(part: OfTopic, condition: str) -> Expression:
    """The rule over the value's columns, which stand in the struct `v` here."""
    from pyspark.sql import functions as F

    return F.expr(qualified(condition, {column.name for column in part.topic.columns}))


def qualified(condition: str, names: set[str]) -> str:
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(condition, read="spark")
    for column in tree.find_all(exp.Column):
        if not column.table and column.name in names:
            column.set("table", exp.to_identifier("v"))
    return tree.sql(dialect="spark")


def _late(part: Input) -> Expression:
    from pyspark.sql import functions as F

    if part.late_after is None or part.watermarked:
        return F.lit(False)
    behind = F.unix_millis("timestamp") - F.unix_millis("event_time")
    return behind > int(part.late_after.total_seconds() * 1000)


def _first(cases: list[Fault]) -> Expression:
    """The reason of the first condition that is true, or null."""
    from pyspark.sql import functions as F

    return F.coalesce(F.lit(None).cast("string"), *(F.when(condition, F.lit(reason)) for condition, reason in cases))
