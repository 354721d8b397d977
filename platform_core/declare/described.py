"""A job's inputs as the manifest of a release describes them, whatever its age."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from platform_core.declare.inputs import Lookup, Raw

Described = Mapping[str, Any]
_KIND = "is"  # the name of the declared value's class


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


def topics(parts: Iterable[Described]) -> list[str]:
    """Each once; an input of another kind has none."""
    return list(dict.fromkeys(str(part["topic"]["name"]) for part in parts if "topic" in part))
