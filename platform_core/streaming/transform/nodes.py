"""The nodes of a plan or of an expression in Spark's JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def listed(sequence: Any) -> list[Any]:
    """A Scala sequence, which Python cannot iterate over."""
    return [sequence.apply(place) for place in range(sequence.size())]


def nodes(top: Any) -> Iterator[Any]:
    yield top
    for child in listed(top.children()):
        yield from nodes(child)
