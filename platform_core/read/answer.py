"""What a bounded read gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AnsweredFrom:
    """Which table was read: its live release, if it is the output of one, at this version of its Delta log."""

    release: str | None
    version: int


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool  # there were more rows than were asked for
    sources: Mapping[str, AnsweredFrom]

    def records(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]
