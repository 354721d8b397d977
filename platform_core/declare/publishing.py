"""What a job writes to Kafka of each row: to which topic, which columns, in which format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from platform_core.declare.conditions import check_condition
from platform_core.declare.tables import Table
from platform_core.declare.topics import Format, Topic, is_topic
from platform_core.declare.wanted import are, is_a
from platform_core.errors import DeclarationError


@dataclass(frozen=True)
class Text:
    """One column, written as text."""

    column: str
    format: ClassVar[Format] = Format.TEXT

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Bytes:
    """One BINARY column, written as it is."""

    column: str
    format: ClassVar[Format] = Format.BYTES

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Long:
    """One column of whole numbers, in eight bytes, as Kafka's LongSerializer writes it."""

    column: str
    format: ClassVar[Format] = Format.LONG

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Double:
    """One DOUBLE column, in eight bytes, as Kafka's DoubleSerializer writes it."""

    column: str
    format: ClassVar[Format] = Format.DOUBLE

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Json:
    """Columns, written as one JSON object; none named: the whole row."""

    columns: tuple[str, ...] = ()
    format: ClassVar[Format] = Format.JSON

    def __post_init__(self) -> None:
        are(self.columns, str, "Json.columns", "Json(('ticker',))")

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns


Part = Text | Json | Bytes | Long | Double
_TYPES = {
    Format.BYTES: ("binary",),
    Format.LONG: ("tinyint", "smallint", "int", "bigint"),
    Format.DOUBLE: ("float", "double"),
}


@dataclass(frozen=True)
class Publish:
    """What a job writes to Kafka: one record for each row that a batch wrote to the table.

    With `where`, for those of them alone for which it is true: comparisons of the table's columns with values, as in
    `level IN ('ERROR', 'FATAL')`. A topic whose key is the table's then has what a reader of `SELECT ... WHERE` would
    see: a row for which the condition no longer holds leaves a tombstone.

    Records of a batch are sent in the order of their keys' bytes; those of one key in the order of batches.
    """

    topic: Topic
    key: Part
    value: Part = Json()
    where: str | None = None

    def __post_init__(self) -> None:
        is_topic(self.topic, f"Publish({self.topic!r})")
        here = f"Publish({self.topic.name!r})"
        for label, part in (("key", self.key), ("value", self.value)):
            remedy = f"Write {label}=Text({part!r}), or Json(...) of columns."
            is_a(part, (Text, Json, Bytes, Long, Double), f"{here}.{label}", remedy)
        is_a(self.where, (str, type(None)), f"{here}.where", "Write where=\"level = 'ERROR'\".")


def check_published(here: str, publishes: Sequence[Publish], table: Table) -> None:
    names = [publish.topic.name for publish in publishes]
    if again := next((name for name in names if names.count(name) > 1), None):
        raise DeclarationError(
            f"{here}.publish: topic {again!r} twice.", remedy="Give each Publish a topic of its own."
        )
    known = {column.name: column.sql for column in table.columns}
    for publish in publishes:
        for part in (publish.key, publish.value):
            _check_columns(here, part, table.name, known)
        if publish.where is not None:
            check_condition(f"{here}.publish: Publish({publish.topic.name!r}).where", publish.where, known)


def _check_columns(here: str, part: Part, table: str, known: dict[str, str]) -> None:
    for name in part.names:
        if name not in known:
            raise DeclarationError(
                f"{here}.publish: {name!r} is not a column of table {table!r}.",
                remedy=f"Choose from {', '.join(sorted(known))}.",
            )
        takes = _TYPES.get(part.format)
        if takes is not None and known[name] not in takes:
            wanted, kind = " or ".join(takes).upper(), type(part).__name__
            raise DeclarationError(
                f"{here}.publish: {kind}({name!r}) takes a {wanted} column, {table!r} has {known[name]}.",
                remedy=f"Write Text({name!r}).",
            )
