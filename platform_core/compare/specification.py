"""What is asked of two sides: which columns make a row's key, which are compared, and the relation of a side's rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb

from platform_core.compare.columns import ComparedColumn, SchemaDifference, common_columns, schema_differences
from platform_core.compare.sides import Side
from platform_core.declare.expected import ROWS, Expected, expected
from platform_core.errors import UsageError
from platform_core.names import PART

BUCKETS = 32  # in a part: what differs is narrowed to some of them before any rows are set side by side
_FORM = 1  # of what is kept: another number forgets it


@dataclass(frozen=True)
class ComparisonSpec:
    columns: tuple[ComparedColumn, ...]
    key: tuple[str, ...]
    schema: tuple[SchemaDifference, ...]
    parted: bool  # whether a key is in the same part on both sides
    rows: Expected | None

    @property
    def keyed(self) -> bool:
        return bool(self.key)

    @property
    def identity(self) -> tuple[ComparedColumn, ...]:
        """What makes two rows the same row: the key, or all that may not differ."""
        if self.keyed:
            return tuple(column for column in self.columns if column.name in self.key)
        return tuple(column for column in self.columns if column.tells_apart)

    def hashed_rows(
        self, side: Side, place: Literal["left", "right"], files: Iterable[str], duck: duckdb.DuckDBPyConnection
    ) -> str:
        """A select of file, part, bucket, key hash kh, row hash h and the values; one row a row."""
        values = ", ".join(f"{getattr(column, place)} as {column.place}" for column in self.columns)
        part = f"coalesce({PART}, '')" if self.parted else "''"
        # a constant leads, so that a hash of one column is mixed too: that of 0 is 0
        same = ", ".join(["1", *(column.hashed for column in self.identity)])
        row = ", ".join(["1", *(column.hashed for column in self.columns)])
        inner = f"select filename as file, {part} as part, {values} from {side.rows_of(files, duck)}"
        hashes = f"select *, hash({same}) as kh, hash({row}) as h from ({inner})"
        return f"select *, cast(kh % {BUCKETS} as utinyint) as bucket from ({hashes})"

    def digest(self, *more: str) -> str:
        """Of all that what is kept depends on; DuckDB may hash otherwise in another version."""
        columns = [
            (column.name, column.left, column.right, column.nested, column.unexpected) for column in self.columns
        ]
        asked = [_FORM, BUCKETS, duckdb.__version__, columns, self.key, self.parted, str(self.rows), more]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def asked(
    left: Side, right: Side, key: Sequence[str], columns: Sequence[str] | None, expect: Mapping[str, str]
) -> ComparisonSpec:
    """`columns` alone are compared, all that both sides have where none are named; the key always is."""
    allowed = {name: expected(text, f"expect[{name!r}]") for name, text in expect.items()}
    wanted = None if columns is None else {*key, *columns}
    types = [
        {name: kind for name, kind in side.types.items() if wanted is None or name in wanted} for side in (left, right)
    ]
    common = common_columns(types[0], types[1], allowed)
    _refuse_unlike(left, right, key, [column.name for column in common])
    rest = {name: one for name, one in allowed.items() if name != ROWS and one.what in ("changes", "within")}
    parted = left.layout == right.layout and (bool(key) or not rest)
    return ComparisonSpec(
        common, tuple(key), schema_differences(types[0], types[1], allowed), parted, allowed.get(ROWS)
    )


def _refuse_unlike(left: Side, right: Side, key: Sequence[str], common: Sequence[str]) -> None:
    missing = [name for name in key if name not in common]
    if missing or not common:
        what = f"{missing[0]!r}, part of the key, is" if missing else "no column is"
        raise UsageError(
            f"{left} and {right} cannot be compared: {what} {'not ' if missing else ''}in both of them.",
            remedy="Name a key of columns that both have.",
        )
