"""What a generator makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from platform_core.declare import Topic


class GeneratedRecord(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True)
class Generator:
    """A kind of records. `records(seed, start_ms, rate)` never ends, and its timestamps never go back."""

    name: str
    topics: tuple[Topic, ...]
    rate: float  # records a second of event time, where none is asked for
    records: Callable[[int, int, float], Iterator[GeneratedRecord]]
    malformed: Callable[[Random], bytes]  # a value that no reader of the topics takes
    about: str | None = None  # what `weir generate` says of it
