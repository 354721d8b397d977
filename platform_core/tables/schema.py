"""Declared columns as Delta's and Arrow's schemas."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
from deltalake import Schema
from sqlglot import exp

from platform_core.declare import Table
from platform_core.declare.schemas import Column
from platform_core.errors import DeclarationError
from platform_core.names import PART

_T = exp.DataType.Type
_PLAIN = {
    _T.TEXT: "string",
    _T.VARCHAR: "string",
    _T.BIGINT: "long",
    _T.INT: "integer",
    _T.SMALLINT: "short",
    _T.TINYINT: "byte",
    _T.FLOAT: "float",
    _T.DOUBLE: "double",
    _T.BOOLEAN: "boolean",
    _T.BINARY: "binary",
    _T.VARBINARY: "binary",
    _T.DATE: "date",
    _T.TIMESTAMP: "timestamp",
    _T.TIMESTAMPTZ: "timestamp",
    _T.TIMESTAMPLTZ: "timestamp",
    _T.TIMESTAMPNTZ: "timestamp_ntz",
}


def delta_schema(columns: Iterable[Column], *more: tuple[str, str]) -> Schema:
    """Delta's schema of the columns; `more` adds plain ones of the platform by name and Delta type."""
    fields = [_field(column.name, _delta_type(column.type), column.comment) for column in columns]
    fields += [_field(name, kind) for name, kind in more]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def table_schema(table: Table, without: Collection[str] = ()) -> Schema:
    """The table as it is stored: its columns, and the part that keeps its files apart."""
    columns = [column for column in table.columns if column.name not in without]
    return delta_schema(columns, *([(PART, "string")] if table.layout else []))


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema(schema.to_arrow())


def _field(name: str, kind: Any, comment: str = "") -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {"comment": comment} if comment else {}}


def _delta_type(kind: exp.DataType) -> Any:
    if kind.this in _PLAIN:
        return _PLAIN[kind.this]
    if kind.this == _T.DECIMAL:
        precision, scale = (
            ([int(part.name) for part in kind.expressions] + [10, 0])[:2] if kind.expressions else (10, 0)
        )
        return f"decimal({precision},{scale})"
    if kind.this == _T.ARRAY:
        return {"type": "array", "elementType": _delta_type(kind.expressions[0]), "containsNull": True}
    if kind.this == _T.MAP:
        key, value = (_delta_type(part) for part in kind.expressions)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if kind.this == _T.STRUCT:
        return {
            "type": "struct",
            "fields": [_field(part.name, _delta_type(part.args["kind"])) for part in kind.expressions],
        }
    raise DeclarationError(
        f"Type {kind.sql(dialect='spark')} has no place in a Delta table.", remedy="Choose another type."
    )
