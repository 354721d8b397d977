"""A script: what a job is given, as one list in order of arrival: records, boundaries of batches, the clock, crashes.

[ask("MMM", "10", second=4), BATCH, ask("MMM", "12", second=5), CRASH_AFTER_WRITE, clock(60), END]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from platform_core.declare import Topic
from platform_core.errors import UsageError

START = datetime(2025, 3, 1, 12, tzinfo=UTC)  # second 0 of a script


@dataclass(frozen=True)
class Record:
    topic: Topic
    key: bytes | None
    value: bytes | None
    at: datetime
    partition: int | None = None  # None: by the key, as a producer chooses it
    offset: int | None = None  # None: the partition's next


class Mark(Enum):
    BATCH = "a batch ends, the next one follows at once"
    QUIET = "nothing comes until all that can be done is done; the batch without data that a new watermark brings, too"
    END = "the clock passes everything: all windows close, all that waits is released"


class Crash(Enum):
    """Where the process dies, within the batch of the records before; without any, between two batches."""

    BEFORE_WRITES = "the batch is computed, nothing is written"
    AFTER_REJECTS = "rejects and lookups are set aside, the table is not written"
    AFTER_WRITE = "the table is committed, nothing is published"
    AFTER_PUBLISH = "table and topic are committed, the checkpoint is not"


@dataclass(frozen=True)
class Clock:
    """The release's clock moves as if a record of that time had come: it closes windows and leaves no row."""

    to: datetime


Step = Record | Mark | Crash | Clock
Script = Iterable[Step]

BATCH, QUIET, END = Mark.BATCH, Mark.QUIET, Mark.END
CRASH = Crash.BEFORE_WRITES
CRASH_AFTER_REJECTS = Crash.AFTER_REJECTS
CRASH_AFTER_WRITE = Crash.AFTER_WRITE
CRASH_AFTER_PUBLISH = Crash.AFTER_PUBLISH


def at(second: float) -> datetime:
    """That second of a script, as rows hold it."""
    return START + timedelta(seconds=second)


def clock(second: float | datetime) -> Clock:
    return Clock(second if isinstance(second, datetime) else at(second))


def record(
    topic: Topic,
    *,
    key: str | int | bytes | None = None,
    value: Mapping[str, Any] | str | bytes | None = None,
    second: float | datetime = 0,
    partition: int | None = None,
    offset: int | None = None,
) -> Record:
    """A dict becomes JSON, text UTF-8, bytes stay as they are, None is a null: for a value, a tombstone."""
    moment = second if isinstance(second, datetime) else at(second)
    if partition is not None and not 0 <= partition < topic.partitions:
        raise UsageError(
            f"record of topic {topic.name!r}: partition {partition}, it has {topic.partitions}.",
            remedy="Leave it out: the key then chooses one.",
        )
    return Record(topic, _bytes(key), _bytes(value), moment, partition, offset)


def records_of(script: Script) -> list[Record]:
    return [step for step in script if isinstance(step, Record)]


def _bytes(value: Mapping[str, Any] | str | int | bytes | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (_json(value) if isinstance(value, Mapping) else str(value)).encode()


def _json(value: Any) -> str:
    """As json.dumps, but a decimal is written digit by digit, and a time as ISO 8601."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{json.dumps(str(name))}: {_json(part)}" for name, part in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_json(part) for part in value) + "]"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value, ensure_ascii=False)
