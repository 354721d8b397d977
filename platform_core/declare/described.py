"""A job's declared values as plain data: how the manifest of a release describes them, whatever its age."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, cast

from platform_core.declare.inputs import Lookup, Raw

Described = Mapping[str, Any]
_KIND = "is"  # the name of the declared value's class


def plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in cast("Sequence[Any]", value)]
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def inputs(declared: Described) -> dict[str, Described]:
    return dict(declared.get("inputs") or {})


def transformed(declared: Described) -> dict[str, Described]:
    """Those that the transform takes."""
    return {name: part for name, part in inputs(declared).items() if part[_KIND] != Lookup.__name__}


def lookups(declared: Described) -> dict[str, Described]:
    return {name: part for name, part in inputs(declared).items() if part[_KIND] == Lookup.__name__}


def landed(declared: Described) -> str:
    """The topic whose records it keeps as they are; empty where it keeps none."""
    return next(iter(topics(part for part in inputs(declared).values() if part[_KIND] == Raw.__name__)), "")


def publishes(declared: Described) -> list[Described]:
    """What it writes to Kafka, a topic each: one by itself, or several."""
    found: Any = declared.get("publish") or []
    return list(cast("list[Described]", found)) if isinstance(found, list) else [found]


def topics(parts: Iterable[Described]) -> list[str]:
    """Each once; an input of another kind has none."""
    return list(dict.fromkeys(str(part["topic"]["name"]) for part in parts if "topic" in part))
