"""A script: what a job is given, as one list in order of arrival: records, boundaries of batches, the clock, crashes.

[ask("MMM", "10", second=4), BATCH, ask("MMM", "12", second=5), CRASH_AFTER_WRITE, clock(60), END]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from platform_core.declare import Format, Topic
from platform_core.errors import UsageError
from platform_core.formats import codec

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
    """A dict is in the topic's format, text in UTF-8, bytes are as given; None is null, as a value a tombstone."""
    moment = second if isinstance(second, datetime) else at(second)
    if partition is not None and not 0 <= partition < topic.partitions:
        raise UsageError(
            f"record of topic {topic.name!r}: partition {partition}, it has {topic.partitions}.",
            remedy="Leave it out: the key then chooses one.",
        )
    return Record(topic, _bytes(key, Format.JSON), _bytes(value, topic.format), moment, partition, offset)


def parted(script: Script, each: Step | None) -> list[Step]:
    """The script with `each` after every record that another one follows: a batch a record, or a rest after each."""
    steps = list(script)
    if each is None:
        return steps
    found: list[Step] = []
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        found += [step, each] if isinstance(step, Record) and isinstance(following, Record) else [step]
    return found


def records_of(script: Script) -> list[Record]:
    return [step for step in script if isinstance(step, Record)]


def _bytes(value: Mapping[str, Any] | str | int | bytes | None, form: Format) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return codec(form).dumps(value) if isinstance(value, Mapping) else str(value).encode()
