"""What is compared: the columns that both sides have, each as one SQL value that is equal exactly when they are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from platform_core.declare.expected import Expected
from platform_core.read.engine import duck_type, quoted

_TIMES = ("timestamp", "timestamp_ntz")
_WHOLE = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = 38
KEY = "(key)"  # no column's name


@dataclass(frozen=True)
class ComparedColumn:
    """`left` and `right` are SQL over the sides' own columns, of one type; `place` names it in the engine's tables."""

    name: str
    place: str
    left: str
    right: str
    time: bool = False  # compared as microseconds since 1970
    difference: str = ""  # SQL over l and r; empty: not a number
    nested: bool = False
    expected: Expected | None = None

    @property
    def tells_apart(self) -> bool:
        """Whether an appended row with another value in it is another row."""
        return self.expected is None or self.expected.what == "new"

    @property
    def differs(self) -> str:
        return f"l.{self.place} is distinct from r.{self.place}"

    @property
    def unexpected(self) -> str:
        """SQL for: differs, and by more than is expected."""
        if self.expected is None or self.expected.what not in ("changes", "within"):
            return self.differs
        if self.expected.what == "changes" or not self.difference:
            return "false" if self.expected.what == "changes" else self.differs
        bound = f"{self.expected.bound:f}"
        allowed = f"{bound} * abs(l.{self.place})" if self.expected.relative else bound
        return f"({self.differs} and not coalesce(abs({self.difference}) <= {allowed}, false))"

    @property
    def shown(self) -> str:
        """SQL over {0}, the value, for people."""
        text = "cast({0} as varchar)"
        return "cast(make_timestamp({0}) as varchar) || 'Z'" if self.time else text

    @property
    def hashed(self) -> str:
        """DuckDB gives null, [] and {a: null} one hash; their texts differ."""
        return f"{self.place}, cast({self.place} as varchar)" if self.nested else self.place


@dataclass(frozen=True)
class SchemaDifference:
    """A column that one side lacks, or has with another type; types as Delta names them."""

    column: str
    left: str | None
    right: str | None
    expected: bool = False

    def __str__(self) -> str:
        if self.column == KEY:
            return f"the key was ({self.left}) and is ({self.right})"
        if self.left is None:
            return f"column {self.column} ({self.right}) is new"
        if self.right is None:
            return f"column {self.column} ({self.left}) is gone"
        return f"column {self.column} was {self.left} and is {self.right}"


def common_columns(
    left: Mapping[str, Any], right: Mapping[str, Any], expect: Mapping[str, Expected]
) -> tuple[ComparedColumn, ...]:
    names = [name for name in left if name in right]
    return tuple(
        _column(name, f"c{place}", left[name], right[name], expect.get(name)) for place, name in enumerate(names)
    )


def schema_differences(
    left: Mapping[str, Any], right: Mapping[str, Any], expect: Mapping[str, Expected]
) -> tuple[SchemaDifference, ...]:
    names = [*left, *(name for name in right if name not in left)]
    pairs = [(name, left.get(name), right.get(name)) for name in names]
    return tuple(
        SchemaDifference(name, _told(one), _told(other), _allowed(one, other, expect.get(name)))
        for name, one, other in pairs
        if _told(one) != _told(other)
    )


def chosen(columns: Sequence[ComparedColumn], names: Sequence[str]) -> tuple[ComparedColumn, ...]:
    found = {column.name: column for column in columns}
    return tuple(found[name] for name in names)


def _allowed(left: Any, right: Any, expected: Expected | None) -> bool:
    if expected is None:
        return False
    if left is None:
        return expected.what == "new"
    return expected.what == ("gone" if right is None else "changes")


def _column(name: str, place: str, left: Any, right: Any, expected: Expected | None) -> ComparedColumn:
    one, other = quoted(name), quoted(name)
    if left == right:
        value = _canonical(one, left)
        kind = _DIFFERENCES.get(left if isinstance(left, str) else "", "")
        if isinstance(left, str) and (match := _DECIMAL.fullmatch(left)):
            kind = "exact" if int(match[1]) < _DIGITS else "double"
        nested = not isinstance(left, str)
        return ComparedColumn(name, place, value, value, left in _TIMES, _difference(place, kind), nested, expected)
    if left in _TIMES and right in _TIMES:
        value = _canonical(one, left)
        return ComparedColumn(name, place, value, value, True, _difference(place, "whole"), False, expected)
    common = _common(left, right)
    sides = [f"cast({_canonical(value, kind)} as {common})" for value, kind in ((one, left), (other, right))]
    numeric = "" if common == "VARCHAR" else "double"
    return ComparedColumn(name, place, sides[0], sides[1], False, _difference(place, numeric), False, expected)


_DIFFERENCES = {**dict.fromkeys((*_WHOLE, *_TIMES), "whole"), "float": "double", "double": "double"}


def _difference(place: str, kind: str) -> str:
    """Exact where the type is; a bigint's may not fit one."""
    cast = {"whole": "hugeint", "double": "double"}.get(kind)
    if cast:
        return f"(cast(l.{place} as {cast}) - cast(r.{place} as {cast}))"
    return f"(l.{place} - r.{place})" if kind else ""


def _common(left: Any, right: Any) -> str:
    """The type in which values of two types are compared; as text where nothing better fits."""
    kinds = (left, right)
    if all(kind in _WHOLE for kind in kinds):
        return "BIGINT"
    whole, scale = zip(*(_digits(kind) for kind in kinds), strict=True)
    if max(whole) + max(scale) <= _DIGITS:
        return f"DECIMAL({max(whole) + max(scale)},{max(scale)})"
    numeric = all(isinstance(kind, str) and (kind in _DIFFERENCES or _DECIMAL.fullmatch(kind)) for kind in kinds)
    return "DOUBLE" if numeric and not any(kind in _TIMES for kind in kinds) else "VARCHAR"


def _digits(kind: Any) -> tuple[int, int]:
    """Before and after the point; more than there is for what is no exact number."""
    if kind in _WHOLE:
        return 19, 0
    match = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    return (int(match[1]) - int(match[2]), int(match[2])) if match else (_DIGITS, _DIGITS)


def _canonical(value: str, kind: Any) -> str:
    if kind in _TIMES:
        return f"epoch_us({value})"
    return _ordered(value, kind) if _has_map(kind) else value


def _has_map(kind: Any) -> bool:
    return '"type": "map"' in json.dumps(kind)


def _ordered(value: str, kind: Any, depth: int = 0) -> str:
    """Maps as entries in the order of their keys: DuckDB tells {a, b} from {b, a}."""
    if not _has_map(kind):
        return value
    inner = f"x{depth}"
    if kind["type"] == "array":
        return f"list_transform({value}, lambda {inner}: {_ordered(inner, kind['elementType'], depth + 1)})"
    if kind["type"] == "struct":
        fields = [(quoted(part["name"]), part["type"]) for part in kind["fields"]]
        parts = ", ".join(f"{name} := {_ordered(f'{value}.{name}', part, depth)}" for name, part in fields)
        return f"case when {value} is null then null else struct_pack({parts}) end"
    entry = f"{{'key': {inner}.key, 'value': {_ordered(f'{inner}.value', kind['valueType'], depth + 1)}}}"
    return f"list_sort(list_transform(map_entries({value}), lambda {inner}: {entry}))"


def _told(kind: Any) -> str | None:
    """As people write it: array<struct<a: long>>."""
    if kind is None or isinstance(kind, str):
        return kind
    return duck_type(kind).lower()
