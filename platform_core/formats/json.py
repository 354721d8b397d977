"""A JSON object of the columns. Times are ISO 8601 in UTC with milliseconds, decimals keep every digit, bytes are in
base64, as Spark reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa

from platform_core.declare.schemas import Column
from platform_core.formats.codec import Fault, Names
from platform_core.formats.sql import evaluated, quoted
from platform_core.formats.text import not_utf8

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

_CORRUPT = "_unreadable"


class JsonCodec:
    def read(self, value: Expression, columns: Sequence[Column]) -> Expression:
        from pyspark.sql import functions as F

        fields = ", ".join(f"`{column.name}` {column.sql}" for column in columns)
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        return F.from_json(value.cast("string"), f"{fields}, {_CORRUPT} STRING", options)

    def is_empty(self, value: Expression) -> Expression:
        from pyspark.sql import functions as F

        return F.coalesce(F.length(value), F.lit(0)) == 0

    def unreadable(self, value: Expression, read: Expression, columns: Sequence[Column]) -> list[Fault]:
        shape = ", ".join(f"{column.name} {column.sql}" for column in columns)
        broken = value.isNotNull() & (read.isNull() | read[_CORRUPT].isNotNull())
        return [not_utf8(value), (broken, f"not JSON of the declared shape ({shape})")]

    def encode(self, rows: pa.Table, parts: Sequence[Names], duck: duckdb.DuckDBPyConnection) -> list[pa.ChunkedArray]:
        return evaluated([_object(names, rows.schema) for names in parts], rows, duck)

    def dumps(self, value: Mapping[str, Any]) -> bytes:
        return _dumped(value).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def _object(names: Names, schema: pa.Schema) -> str:
    """All columns but the platform's own where none are named."""
    chosen = names or [name for name in schema.names if not name.startswith("_")]
    fields = ", ".join(f"'{name}', {_written(quoted(name), schema.field(name).type)}" for name in chosen)
    return f"encode(CAST(json_object({fields}) AS VARCHAR))"


def _written(value: str, kind: Any, depth: int = 0) -> str:
    """DuckDB's expression for what JSON has of a value; as it is where DuckDB writes what Spark reads."""
    if not _differs(kind):
        return value
    one = f"x{depth}"

    def within(part: str, kind: Any) -> str:
        return _written(part, kind, depth + 1)

    if pa.types.is_timestamp(kind):
        return f"strftime({value}, '%Y-%m-%dT%H:%M:%S.%g{'Z' if kind.tz else ''}')"
    if pa.types.is_list(kind):
        return f"list_transform({value}, lambda {one}: {within(one, kind.value_type)})"
    if pa.types.is_map(kind):
        entry = f"{{'key': {within(f'{one}.key', kind.key_type)}, 'value': {within(f'{one}.value', kind.item_type)}}}"
        return f"map_from_entries(list_transform(map_entries({value}), lambda {one}: {entry}))"
    if pa.types.is_struct(kind):
        parts = ", ".join(f"'{part.name}': {within(f'{value}.{quoted(part.name)}', part.type)}" for part in kind)
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {{{parts}}} END"
    return f"base64({value})"


def _differs(kind: Any) -> bool:
    """Whether DuckDB would write it otherwise: times, and bytes, also within others."""
    if pa.types.is_map(kind):
        return _differs(kind.key_type) or _differs(kind.item_type)
    if pa.types.is_nested(kind):
        return any(_differs(kind.field(place).type) for place in range(kind.num_fields))
    return pa.types.is_timestamp(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _dumped(value: Any) -> str:
    """As json.dumps, but a decimal is written digit by digit, a time as ISO 8601, bytes in base64."""
    match value:
        case Mapping():
            parts = cast("Mapping[Any, Any]", value).items()
            return "{" + ", ".join(f"{json.dumps(str(name))}: {_dumped(part)}" for name, part in parts) + "}"
        case list() | tuple():
            return "[" + ", ".join(_dumped(part) for part in cast("Sequence[Any]", value)) + "]"
        case Decimal():
            return f"{value:f}"
        case date():  # a datetime is a date too
            return json.dumps(value.isoformat())
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case _:
            return json.dumps(value, ensure_ascii=False)
