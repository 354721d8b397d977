"""Declared values compared field by field, and what each difference means for rows that are there already."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

from platform_core import declare
from platform_core.declare.described import plain
from platform_core.declare.schemas import columns
from platform_core.errors import DeclarationError

_ORDER = "order of columns"
_SCHEMAS = {("Table", "schema"), ("Topic", "value")}
# Of one topic, or of several by name: records are made of the row's columns, whatever is declared of the topic.
_OF_OUTPUT_TOPICS = (
    "partitions",
    "retention",
    "compacted",
    "value*",
    "format",
    "event_time",
    "tombstones",
    "key",
)
# Everything else that is declared decides rows: what is not known to be harmless needs a replay.
_HARMLESS = (
    "name",
    "transform",  # its name alone; its code is compared as code
    "*.comment",
    "*owner",
    "*description",
    "*.personal*",
    "expect*",
    "updates_every",
    "reject_limit",
    "settings*",
    "inputs.*.late",  # where late records go; in no row are they either way
    "inputs.*.topic.partitions",  # the broker's count, not the declared one, is what is read
    "inputs.*.topic.retention",
    "inputs.*.topic.compacted",
    *(f"publish.{one}topic.{name}" for one in ("", "*].") for name in _OF_OUTPUT_TOPICS),
)


@dataclass(frozen=True)
class Field:
    path: str
    was: Any
    now: Any

    @property
    def decides(self) -> bool:
        return not any(fnmatchcase(self.path, pattern) for pattern in _HARMLESS)

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.was)} became {_shown(self.now)}"


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT: Any = _Absent()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Field]:
    """In the order of the new values. A field that the older platform did not know has had its default."""
    found = _compared("", _known(old, "StreamingJob"), _known(new, "StreamingJob"))
    return [one for one in found if not _follows(one)]


def _follows(one: Field) -> bool:
    """Another order, where columns came or went, says nothing that these do not say."""
    return one.path.endswith(f".{_ORDER}") and set(one.was) != set(one.now)


def _compared(path: str, old: Any, new: Any) -> Iterator[Field]:
    if isinstance(old, dict) and isinstance(new, dict):
        was, now = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        if was.get("is") == now.get("is"):
            for name in dict.fromkeys([*now, *was]):
                yield from _compared(f"{path}.{name}".lstrip("."), was.get(name, _ABSENT), now.get(name, _ABSENT))
            return
    if old != new:
        yield Field(path, old, new)


def _known(value: Any, kind: str = "") -> Any:
    """Ready to compare: with defaults, schemas as columns, and what has names by its names."""
    if isinstance(value, list):
        return _by_name(cast("list[Any]", value))
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    kind = str(parts.get("is", kind))
    whole = {**_defaults(kind), **parts}
    return {name: _columns(part) if (kind, name) in _SCHEMAS else _known(part) for name, part in whole.items()}


def _by_name(values: Sequence[Any]) -> Any:
    named = [part for part in values if isinstance(part, dict) and ("name" in part or "topic" in part)]
    if not values or len(named) < len(values):
        return list(values)
    found = {_name(part): _known(part) for part in named}
    return found if len(found) == len(values) else list(values)


def _name(part: Mapping[str, Any]) -> str:
    return str(part["name"]) if "name" in part else f"[{part['topic']['name']}]"


def _columns(ddl: str) -> Any:
    try:
        found = columns(ddl, "schema")
    except DeclarationError:  # written for a later or earlier reader of schemas
        return ddl
    told = {
        column.name: {"type": column.sql, "required": column.required, "comment": column.comment} for column in found
    }
    return {**told, _ORDER: [column.name for column in found]}


def _defaults(kind: str) -> dict[str, Any]:
    declared = getattr(declare, kind, None)
    if declared is None or not dataclasses.is_dataclass(declared):
        return {}
    return {field.name: plain(_default(field)) for field in dataclasses.fields(declared) if _has_default(field)}


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return str(parts.get("type") or parts.get("holds") or parts.get("name") or parts.get("is") or parts)
    return "nothing" if value is None else str(value)
