"""Where a release begins to read: chosen when it was made, and the same at every start of its first batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from platform_core.control.position import Offsets, as_numbers, as_text


@dataclass(frozen=True)
class Start:
    """`offsets` has every partition of every input; lookups' are their oldest, whatever was asked for."""

    asked: str  # "earliest", or a time as it was written
    at_ms: int | None  # None: from the earliest
    offsets: Offsets

    def plain(self) -> dict[str, Any]:
        return {"asked": self.asked, "at_ms": self.at_ms, "offsets": as_text(self.offsets)}

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Start:
        return cls(raw["asked"], raw["at_ms"], as_numbers(raw["offsets"]))
