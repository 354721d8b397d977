"""Tables: what readers name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from platform_core.declare.schemas import Column, columns
from platform_core.declare.wanted import are, is_a
from platform_core.errors import DeclarationError
from platform_core.names import CHANGE, PART

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True)
class Hours:
    """Files apart by the hour of a TIMESTAMP column: a batch touches the newest ones alone."""

    column: str


@dataclass(frozen=True)
class Days:
    """Files apart by the UTC day of a TIMESTAMP column."""

    column: str


@dataclass(frozen=True)
class Buckets:
    """Files apart by a hash of a column, for keys without a time."""

    column: str
    count: int = 16


Layout = Hours | Days | Buckets | None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A Delta table. With a key its rows are updated in place, without one they are appended."""

    name: str
    schema: str
    key: tuple[str, ...] = ()
    layout: Layout = None
    personal: tuple[str, ...] = ()
    owner: str = "team:data"
    description: str = ""

    def __post_init__(self) -> None:
        here = f"table {self.name!r}"
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"{here}.name: not a table's name.", remedy="Use lower case letters, digits and '_', 63 at most."
            )
        _check_kinds(here, self)
        types = {column.name: column.sql for column in self.columns}
        for name in types.keys() & {PART, CHANGE}:
            raise DeclarationError(f"{here}.schema: {name!r} is the platform's own column.", remedy="Rename it.")
        by = () if self.layout is None else (self.layout.column,)
        for field, names in (("key", self.key), ("layout", by), ("personal", self.personal)):
            for name in names:
                if name not in types:
                    raise DeclarationError(
                        f"{here}.{field}: {name!r} is not one of its columns.",
                        remedy=f"Choose from {', '.join(types)}.",
                    )
        if isinstance(self.layout, (Hours, Days)) and types[self.layout.column] != "timestamp":
            raise DeclarationError(
                f"{here}.layout: {self.layout.column!r} is {types[self.layout.column]}, not a timestamp.",
                remedy="Name a TIMESTAMP column, or use Buckets.",
            )
        if self.key and self.layout is not None and self.layout.column not in self.key:
            raise DeclarationError(
                f"{here}.layout: {self.layout.column!r} is not part of the key: a row could move between files.",
                remedy=f"Lay it out by one of {', '.join(self.key)}.",
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        return columns(self.schema, f"table {self.name!r}.schema")

    @property
    def keyed(self) -> bool:
        return bool(self.key)


def _check_kinds(here: str, table: Table) -> None:
    are(table.key, str, f"{here}.key", "key=('ticker',): a tuple, with its comma")
    are(table.personal, str, f"{here}.personal", "personal=('user_id',): a tuple, with its comma")
    layout = f"Write Days({table.layout!r}), Hours(...) or Buckets(...)."
    is_a(table.layout, (Hours, Days, Buckets, type(None)), f"{here}.layout", layout)
