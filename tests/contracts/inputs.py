"""Input for every job: of the generators where one makes its topics, made up from the schema otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from random import Random
from typing import Any

from sqlglot import exp

from ingest.generators import clicks, lines
from ingest.generators.kinds import GENERATORS as KINDS
from ingest.generators.records import Generator
from platform_core.declare import Format, StreamingJob, Topic
from platform_core.testing import BATCH, END, QUIET, START, Record, Step, at, record

SECONDS = 40
SPANS = {  # generator -> seconds, where 40 close no window
    "connections": 1200,
    "heartbeats": 6 * 3600,
    "machines": 24 * 3600,
    "results": 3 * 3600,
}
RECORDS = 160  # few enough for a test, for many windows
GENERATORS = {**KINDS, "clicks": clicks.of_users(8), "lines": lines.of_words(30)}
_T = exp.DataType.Type


def script_for(job: StreamingJob, boundary: Step = BATCH) -> list[Step]:
    """Some seconds of input in four batches, one malformed record in the second; `boundary` ends the third."""
    records = list(_records(job))
    quarter = len(records) // 4 + 1
    parts = [records[place : place + quarter] for place in range(0, len(records), quarter)]
    parts[1].append(malformed(job))
    return [*parts[0], QUIET, *parts[1], BATCH, *parts[2], boundary, *(parts[3] if parts[3:] else ()), END]


def malformed(job: StreamingJob) -> Record:
    """A record that no reader takes, at coordinates that no other record has."""
    topic = next(iter(job.streams.values())).topic
    when = SECONDS / 2
    if topic.format is Format.BYTES:
        return record(topic, key="malformed", value=None, second=when, partition=0, offset=1000)
    return record(topic, key="malformed", value=b"\xff\xfe", second=when, partition=0, offset=1000)


def _records(job: StreamingJob) -> Iterator[Record]:
    names = {topic.name: topic for topic in job.topics}
    for generator in GENERATORS.values():
        if names.keys() <= {topic.name for topic in generator.topics}:
            return _generated(generator, names)
    return _made_up(job)


def _generated(generator: Generator, topics: dict[str, Topic]) -> Iterator[Record]:
    start, span = int(START.timestamp() * 1000), SPANS.get(generator.name, SECONDS)
    for made in generator.records(7, start, RECORDS / span):
        if made.timestamp_ms >= start + span * 1000:
            return
        if made.topic in topics:
            moment = datetime.fromtimestamp(made.timestamp_ms / 1000, UTC)
            yield record(topics[made.topic], key=made.key, value=made.value, second=moment)


def _made_up(job: StreamingJob) -> Iterator[Record]:
    random = Random(job.name)
    return islice((_one(random, topic, second) for second in range(SECONDS) for topic in job.topics), 400)


def _one(random: Random, topic: Topic, second: int) -> Record:
    row = {column.name: _value(random, column.type, second) for column in topic.columns}
    return record(topic, key=str(random.randrange(3)), value=row, second=second)


def _value(random: Random, kind: exp.DataType, second: int) -> Any:
    match kind.this:
        case _T.TIMESTAMP | _T.TIMESTAMPTZ | _T.TIMESTAMPLTZ | _T.TIMESTAMPNTZ:
            return at(second)
        case _T.DATE:
            return at(second).date()
        case _T.BOOLEAN:
            return random.random() < 0.5
        case _T.ARRAY:
            return [_value(random, kind.expressions[0], second)]
        case _T.STRUCT:
            return {part.name: _value(random, part.args["kind"], second) for part in kind.expressions}
        case _T.MAP:
            return {"a": _value(random, kind.expressions[1], second)}
        case _T.BINARY | _T.VARBINARY:
            return random.randbytes(4)
        case _T.TEXT | _T.VARCHAR:
            return random.choice(("ann", "bob", "carol"))
        case _:
            return random.randrange(1, 100)
