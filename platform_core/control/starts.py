"""Where a release begins to read: chosen when it was made, and the same at every start of its first batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from platform_core.control.position import (
    Offsets,
    Place,
    Tables,
    TableVersion,
    as_numbers,
    as_places,
    as_text,
    tables_of,
)


@dataclass(frozen=True)
class StartPosition:
    """`offsets` has every partition of every input; lookups' are their oldest, whatever was asked for."""

    asked: str  # "earliest", or a time as it was written
    at_ms: int | None  # None: from the earliest
    offsets: Offsets
    tables: Tables = field(default_factory=dict[str, TableVersion])

    @property
    def places(self) -> dict[str, Place]:
        return {**self.offsets, **self.tables}

    def plain(self) -> dict[str, Any]:
        tables = {"tables": as_text(self.tables)} if self.tables else {}
        return {"asked": self.asked, "at_ms": self.at_ms, "offsets": as_text(self.offsets), **tables}

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> StartPosition:
        return cls(raw["asked"], raw["at_ms"], as_numbers(raw["offsets"]), tables_of(as_places(raw.get("tables", {}))))
