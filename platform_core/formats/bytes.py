"""The whole value is one column's bytes, unread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from platform_core.declare.schemas import Column
from platform_core.formats.codec import Fault, Names, column_of

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression


class BytesCodec:
    def read(self, value: Expression, columns: Sequence[Column]) -> Expression:
        from pyspark.sql import functions as F

        return F.struct(value.alias(columns[0].name))

    def is_empty(self, value: Expression) -> Expression:
        return value.isNull()

    def unreadable(self, value: Expression, read: Expression, columns: Sequence[Column]) -> list[Fault]:  # noqa: ARG002
        return []

    def encode(
        self,
        rows: pa.Table,
        parts: Sequence[Names],
        duck: duckdb.DuckDBPyConnection,  # noqa: ARG002
    ) -> list[pa.ChunkedArray]:
        return [rows[column_of(part)].cast(pa.binary()) for part in parts]

    def dumps(self, value: Mapping[str, Any]) -> bytes:
        return bytes(value[column_of(value)])

    def loads(self, data: bytes) -> Any:
        return data
