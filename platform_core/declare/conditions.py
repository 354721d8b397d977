"""Conditions over a table's columns that every engine answers alike: comparisons with values, and, or, not."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from platform_core.errors import DeclarationError

_TAKEN = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Paren,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Null,
    exp.Boolean,
    exp.Literal,
    exp.Neg,
    exp.Column,
    exp.Identifier,
)
_COMPARED = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def check_condition(here: str, text: str, columns: Mapping[str, str]) -> None:
    """`columns` are the table's, name -> type."""
    for node in _parsed(here, text).walk():
        if not isinstance(node, _TAKEN):
            raise DeclarationError(
                f"{here}: {node.sql(dialect='spark')!r} is no comparison of a column with a value, in {text!r}.",
                remedy="Compute it in the transform, as a column of the table, and compare that.",
            )
        if isinstance(node, exp.Column):
            _check_column(here, node, columns)


def in_duckdb(text: str) -> str:
    """The condition as DuckDB has it; what is null does not hold."""
    return f"coalesce({_parsed('condition', text).sql(dialect='duckdb', identify=True)}, false)"


def _check_column(here: str, column: exp.Column, columns: Mapping[str, str]) -> None:
    kind = columns.get(column.name)
    if kind is None or column.table:
        raise DeclarationError(
            f"{here}: {column.sql()!r} is not a column of the table.",
            remedy=f"Choose from {', '.join(sorted(columns))}.",
        )
    if not kind.startswith(_COMPARED):
        raise DeclarationError(
            f"{here}: column {column.name!r} is {kind}, which engines do not compare alike.",
            remedy="Compute a BOOLEAN column in the transform, and name that.",
        )


def _parsed(here: str, text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise DeclarationError(
            f"{here}: {text!r} is no condition.", remedy="Write SQL, as in level IN ('ERROR', 'FATAL')."
        ) from error
