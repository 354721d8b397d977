"""What came of a script: the table's rows, what was published, what was refused, and the facts of each batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from platform_core.declare import Format, Publish, StreamingJob, Topic
from platform_core.formats import codec
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.sink.encoding import Message, Records

Row = dict[str, Any]


class Published(NamedTuple):
    """A record of an output topic; JSON read as a dict, text as a string."""

    key: Any
    value: Any


class Refused(NamedTuple):
    """A record in the rejects: where it stood, what it was, and why it was refused."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}: {self.reason}"


class Written(NamedTuple):
    """What one batch wrote: rows inserted and updated, in the order of the key, and records by topic."""

    rows: list[Row]
    published_to: dict[str, list[Published]]

    @property
    def published(self) -> list[Published]:
        return [record for records in self.published_to.values() for record in records]


@dataclass(frozen=True)
class Result:
    """Rows are in the order of the table's key; times are aware and in UTC.

    `batches` has the facts of each batch, `written` what those of them wrote that wrote something; a batch run has
    neither.
    """

    rows: list[Row]
    rejects: list[Refused] = field(default_factory=list[Refused])
    late: int = 0
    batches: list[Batch] = field(default_factory=list[Batch])
    written: list[Written] = field(default_factory=list[Written])
    watermark: datetime | None = None

    def columns(self, *names: str) -> list[tuple[Any, ...]]:
        """These columns of every row, sorted: what most tests compare."""
        return sorted((tuple(row[name] for name in names) for row in self.rows), key=_rank)

    @property
    def published(self) -> list[Published]:
        """The records of all output topics, batch by batch; of a job with several see `published_to`."""
        return [record for batch in self.written for record in batch.published]

    def published_to(self, topic: Topic) -> list[Published]:
        return [record for batch in self.written for record in batch.published_to.get(topic.name, [])]

    @property
    def newest_published(self) -> dict[Any, Any]:
        """The output topic as a table: the newest value of each key, keys as text."""
        return {_text(record.key): record.value for record in self.published}


def in_order(rows: Iterable[Mapping[str, Any]], job: StreamingJob) -> list[Row]:
    """The declared columns of the rows, sorted by key, or by all columns where there is none."""
    names = [column.name for column in job.output.columns]
    by = job.output.key or names
    found = [{name: _in_utc(row[name]) for name in names} for row in rows]
    return sorted(found, key=lambda row: [_rank(row[name]) for name in by])


def decoded(records: Records, publishes: Sequence[Publish]) -> dict[str, list[Published]]:
    return {publish.topic.name: _decoded(records.get(publish.topic.name, ()), publish) for publish in publishes}


def _decoded(messages: Sequence[Message], publish: Publish) -> list[Published]:
    return [Published(_read(key, publish.key.format), _read(value, publish.value.format)) for key, value in messages]


def refused(rows: Iterable[Mapping[str, Any]]) -> list[Refused]:
    found = [Refused(*(_plain(row[name]) for name in Refused._fields)) for row in rows]
    return sorted(set(found), key=lambda reject: reject[:3])


def _read(data: bytes | None, written_as: Format) -> Any:
    return None if data is None else codec(written_as).loads(data)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rank(value: Any) -> tuple[int, Any]:
    """The value's place among those of its column: nulls first, then by size, time or letters."""
    match value:
        case None:
            return (0, "")
        case int() | float() | Decimal() | str() | bytes() | date():  # a datetime is a date too
            return (1, value)
        case list() | tuple():
            return (1, [_rank(part) for part in value])
        case _:
            return (2, repr(value))
