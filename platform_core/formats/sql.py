"""Expressions of DuckDB over a batch's rows, times in UTC whatever the machine's zone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa


def evaluated(expressions: Sequence[str], rows: pa.Table, duck: duckdb.DuckDBPyConnection) -> list[pa.ChunkedArray]:
    """Their values of each row, in the order of the rows: of a plain SELECT over one table DuckDB keeps it."""
    duck.register("encoded_", rows.cast(pa.schema([field.with_type(_zoneless(field.type)) for field in rows.schema])))
    try:
        return duck.sql(f"SELECT {', '.join(expressions)} FROM encoded_").to_arrow_table().columns
    finally:
        duck.unregister("encoded_")


def quoted(name: str) -> str:
    return f'"{name}"'


def _zoneless(kind: Any) -> pa.DataType:
    """DuckDB would format a zoned time in the zone of the machine."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_zoneless(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_zoneless(kind.key_type), _zoneless(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoneless(kind.value_type)))
    return kind
