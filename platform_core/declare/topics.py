"""Topics: what a record's key, value and time are, declared once."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from platform_core.declare.durations import duration
from platform_core.declare.schemas import Column, columns
from platform_core.declare.wanted import are, is_a, shown
from platform_core.errors import DeclarationError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Format(Enum):
    JSON = "json"
    TEXT = "text"  # the whole value is one UTF-8 string, in the one column of the schema
    BYTES = "bytes"  # the whole value, unread, in the one column of the schema
    LONG = "long"  # the whole value is a BIGINT in eight bytes, as Kafka's LongSerializer writes it
    DOUBLE = "double"  # or a DOUBLE, as its DoubleSerializer does

    @property
    def is_one_column(self) -> bool:
        """Whether the whole value is one column."""
        return self is not Format.JSON

    @property
    def column_type(self) -> str | None:
        """The one that the column must have."""
        return {Format.LONG: "bigint", Format.DOUBLE: "double"}.get(self)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A Kafka topic. Its records reach a transform as the value's columns and three of the platform's:

    `event_time`, `key` (the record's key as text) and `record` (topic, partition, offset, timestamp).
    """

    name: str
    value: str
    format: Format = Format.JSON
    key: str | None = None  # the name of what the key holds; None: the key is ignored, null where it is not UTF-8
    event_time: str | None = None  # a TIMESTAMP field of the value; None: the record's timestamp
    partitions: int = 4
    retention: str | None = None  # None: kept for ever, as replays want it
    compacted: bool = False
    tombstones: bool = False  # a null value is a deletion of its key, not a bad record
    personal: tuple[str, ...] = ()
    owner: str = "team:data"
    description: str = ""

    def __post_init__(self) -> None:
        here = f"topic {self.name!r}"
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"{here}.name: not a name that Kafka takes.", remedy="Use letters, digits, '.', '_' and '-'."
            )
        self._check_kinds(here)
        names = {column.name for column in self.columns}
        if self.format.is_one_column and len(names) != 1:
            raise DeclarationError(
                f"{here}.value: {self.format.value} has one column, {len(names)} are declared.",
                remedy="Declare one column, as in 'line STRING'.",
            )
        kinds = {column.sql for column in self.columns}
        if self.format.column_type is not None and kinds != {self.format.column_type}:
            raise DeclarationError(
                f"{here}.value: {self.format.value} is one {self.format.column_type.upper()}, came {self.value!r}.",
                remedy=f"Declare 'name {self.format.column_type.upper()}'.",
            )
        taken = sorted(names & {"event_time", "key", "record"})
        if taken and self.event_time != "event_time":
            raise DeclarationError(
                f"{here}.value: {taken[0]!r} is the platform's own column.", remedy="Name the field otherwise."
            )
        at = next((column.sql for column in self.columns if column.name == self.event_time), "timestamp")
        if at != "timestamp":
            raise DeclarationError(
                f"{here}.event_time: {self.event_time!r} is {at}, not a timestamp.", remedy="Name a TIMESTAMP column."
            )
        for field, used in (("event_time", (self.event_time,)), ("personal", self.personal)):
            for name in used:
                if name is not None and name not in names:
                    raise DeclarationError(
                        f"{here}.{field}: {name!r} is not a column of its value.",
                        remedy=f"Choose one of {', '.join(sorted(names))}.",
                    )
        if self.partitions < 1:
            raise DeclarationError(f"{here}.partitions: {self.partitions}.", remedy="Give it at least one.")
        if self.retention is not None:
            duration(self.retention, f"{here}.retention")
        if self.tombstones and self.key is None:
            raise DeclarationError(f"{here}.tombstones: a tombstone needs a key.", remedy="Declare `key`.")

    def _check_kinds(self, here: str) -> None:
        is_a(self.format, Format, f"{here}.format", f"Write {' or '.join(map(str, Format))}.")
        is_a(self.partitions, int, f"{here}.partitions", "Write a whole number.")
        is_a(self.key, (str, type(None)), f"{here}.key", "Say in words what the key holds.")
        are(self.personal, str, f"{here}.personal", "personal=('user_id',): a tuple, with its comma")

    @property
    def columns(self) -> tuple[Column, ...]:
        return columns(self.value, f"topic {self.name!r}.value")

    @property
    def kept_for(self) -> timedelta | None:
        return None if self.retention is None else duration(self.retention, f"topic {self.name!r}.retention")


def is_topic(value: object, here: str) -> None:
    """A job's author may write the name of a topic, where the topic itself is wanted."""
    if not isinstance(value, Topic):
        raise DeclarationError(f"{here}: it takes a Topic, came {shown(value)}.", remedy=_nearest(str(value)))


def _nearest(text: str) -> str:
    known = _declared()
    names = {key: constant for constant, topic in known.items() for key in (constant, topic.name)}
    near = difflib.get_close_matches(text, names, n=1)
    if near:
        constant = names[near[0]]
        return f"Did you mean {constant}, of topic {known[constant].name!r}, from ingest/topics.py?"
    return f"Import one from ingest/topics.py: {', '.join(known) or 'none is declared yet'}."


def _declared() -> dict[str, Topic]:
    """The topics by the names of their constants: what an author writes."""
    if importlib.util.find_spec("ingest") is None:
        return {}
    found = vars(importlib.import_module("ingest.topics"))
    return {constant: value for constant, value in found.items() if isinstance(value, Topic)}
