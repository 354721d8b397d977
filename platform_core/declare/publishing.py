"""What a job writes to Kafka of each row: which columns, in which format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
class Json:
    """Columns, written as one JSON object; none named: the whole row."""

    columns: tuple[str, ...] = ()
    format: ClassVar[Format] = Format.JSON

    def __post_init__(self) -> None:
        are(self.columns, str, "Json.columns", "Json(('ticker',))")

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns


Part = Text | Json | Bytes


@dataclass(frozen=True)
class Publish:
    """What a job writes to Kafka: one record for each row that a batch wrote to the table."""

    topic: Topic
    key: Part
    value: Part = Json()

    def __post_init__(self) -> None:
        is_topic(self.topic, f"Publish({self.topic!r})")
        here = f"Publish({self.topic.name!r})"
        for label, part in (("key", self.key), ("value", self.value)):
            remedy = f"Write {label}=Text({part!r}), or Json(...) of columns."
            is_a(part, (Text, Json, Bytes), f"{here}.{label}", remedy)


def check_published(here: str, publish: Publish | None, table: Table) -> None:
    known = {column.name: column.sql for column in table.columns}
    for part in (publish.key, publish.value) if publish else ():
        for name in part.names:
            if name not in known:
                raise DeclarationError(
                    f"{here}.publish: {name!r} is not a column of table {table.name!r}.",
                    remedy=f"Choose from {', '.join(sorted(known))}.",
                )
            if part.format is Format.BYTES and known[name] != "binary":
                raise DeclarationError(
                    f"{here}.publish: Bytes({name!r}) takes a BINARY column, {table.name!r} has {known[name]}.",
                    remedy=f"Write Text({name!r}).",
                )
