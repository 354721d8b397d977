"""The whole value is one column, as text in UTF-8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from platform_core.declare.schemas import Column
from platform_core.formats.codec import Fault, Names, column_of
from platform_core.formats.sql import evaluated, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression


class TextCodec:
    def read(self, value: Expression, columns: Sequence[Column]) -> Expression:
        from pyspark.sql import functions as F

        return F.struct(value.cast("string").alias(columns[0].name))

    def is_empty(self, value: Expression) -> Expression:
        return value.isNull()

    def unreadable(self, value: Expression, read: Expression, columns: Sequence[Column]) -> list[Fault]:  # noqa: ARG002
        return [not_utf8(value)]

    def encode(self, rows: pa.Table, parts: Sequence[Names], duck: duckdb.DuckDBPyConnection) -> list[pa.ChunkedArray]:
        names = [column_of(part) for part in parts]
        if all(_is_plain(rows.schema.field(name).type) for name in names):
            return [rows[name].cast(pa.string()).cast(pa.binary()) for name in names]
        return evaluated([f"encode(CAST({quoted(name)} AS VARCHAR))" for name in names], rows, duck)

    def dumps(self, value: Mapping[str, Any]) -> bytes:
        return str(value[column_of(value)]).encode()

    def loads(self, data: bytes) -> Any:
        return data.decode()


def _is_plain(kind: Any) -> bool:
    """Whether Arrow writes it as DuckDB does, and needs no query for it."""
    return pa.types.is_string(kind) or pa.types.is_integer(kind)


def not_utf8(value: Expression) -> Fault:
    from pyspark.sql import functions as F

    return ~F.is_valid_utf8(value.cast("string")), "not UTF-8"
