"""Schemas are DDL text, read here without a JVM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from platform_core.errors import DeclarationError

_T = exp.DataType.Type
_TYPES = {
    *(_T.TEXT, _T.VARCHAR, _T.BINARY, _T.VARBINARY, _T.BOOLEAN, _T.DATE),
    *(_T.BIGINT, _T.INT, _T.SMALLINT, _T.TINYINT, _T.FLOAT, _T.DOUBLE, _T.DECIMAL),
    *(_T.TIMESTAMP, _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ, _T.TIMESTAMPNTZ),
    *(_T.ARRAY, _T.MAP, _T.STRUCT, _T.VARIANT),
}


@dataclass(frozen=True)
class Column:
    name: str
    type: exp.DataType
    comment: str = ""
    required: bool = False  # NOT NULL: a record without it is rejected

    @property
    def sql(self) -> str:
        """The column's type as Spark writes it."""
        return self.type.sql(dialect="spark").lower().replace(", ", ",")


@lru_cache(maxsize=1024)
def columns(ddl: str, field: str) -> tuple[Column, ...]:
    """The columns of `ddl`; `field` says where it stands, for the error."""
    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", read="spark")
    except sqlglot.ParseError as error:
        raise _unreadable(ddl, field, str(error.errors[0]["description"])) from error
    schema = statement.find(exp.Schema)
    found = tuple(_column(part, ddl, field) for part in (schema.expressions if schema else ()))
    _refuse_doubles(found, field)
    return found


def _column(part: Any, ddl: str, field: str) -> Column:
    kind = part.args.get("kind") if isinstance(part, exp.ColumnDef) else None
    if not isinstance(kind, exp.DataType):
        raise _unreadable(ddl, field, f"{part.sql(dialect='spark')!r} is not a column with a type")
    for one in kind.find_all(exp.DataType):
        if one.this not in _TYPES:
            raise _unreadable(ddl, field, f"column {part.name!r} is of type {one.this.value}, which is none of ours")
    comment = part.find(exp.CommentColumnConstraint)
    required = part.find(exp.NotNullColumnConstraint) is not None
    return Column(part.name, kind, comment.name if comment else "", required)


def _refuse_doubles(found: tuple[Column, ...], field: str) -> None:
    names = [column.name.lower() for column in found]
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles or not found:
        came = f"column {doubles[0]!r} stands twice" if doubles else "it has no columns"
        raise DeclarationError(f"{field}: {came}.", remedy="Name each column once.")


def _unreadable(ddl: str, field: str, why: str) -> DeclarationError:
    return DeclarationError(
        f"{field}: {ddl!r} is not a schema: {why}.",
        remedy="Write columns as Spark DDL, as in 'ticker STRING, price DECIMAL(18,6)'.",
    )
