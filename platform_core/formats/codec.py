"""What a format can do: a stream is read by Spark, a batch written from Arrow, a test's record made and read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pyarrow as pa

from platform_core.declare.schemas import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

Names = Sequence[str]  # of columns
Fault = tuple["Expression", str]  # a condition over a record, and why it is refused then


class Codec(Protocol):
    """One way to write columns as bytes. No reason ever quotes a value: values may be personal."""

    def read(self, value: Expression, columns: Sequence[Column]) -> Expression:
        """A struct of the declared columns; null, or marked in it, where the bytes cannot be read."""
        ...

    def is_empty(self, value: Expression) -> Expression:
        """Whether there is nothing in it; never null."""
        ...

    def unreadable(self, value: Expression, read: Expression, columns: Sequence[Column]) -> list[Fault]:
        """Why a value that is not null cannot be read, the first reason first; `read` is what `read` made of it."""
        ...

    def encode(self, rows: pa.Table, parts: Sequence[Names], duck: duckdb.DuckDBPyConnection) -> list[pa.ChunkedArray]:
        """Of each part the bytes of its columns of each row, in the order of the rows; null where a row has no value.

        Parts are given together, as a query costs 2 ms of CPU, however few rows there are."""
        ...

    def dumps(self, value: Mapping[str, Any]) -> bytes:
        """One record, of its columns by name."""
        ...

    def loads(self, data: bytes) -> Any:
        """One record, as a test compares it."""
        ...


def column_of(names: Iterable[str]) -> str:
    """The column of a format that has one."""
    (name,) = names
    return name
