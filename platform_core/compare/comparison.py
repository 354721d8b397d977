"""What a comparison found, as plain numbers, a few examples, and nothing about how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from platform_core.compare.columns import SchemaDifference
from platform_core.control.position import Place, Places

Kind = Literal["only left", "only right", "changed"]
KINDS: tuple[Kind, ...] = ("only left", "only right", "changed")
EXAMPLES = 20  # of each kind
Shown = Mapping[str, str | None]


@dataclass(frozen=True)
class Count:
    """Keys that differ in one way; of appended tables, rows."""

    found: int = 0
    unexpected: int = 0
    explained: Mapping[str, int] = field(default_factory=dict[str, int])  # of the unexpected: late, not yet due

    @property
    def unexplained(self) -> int:
        return self.unexpected - sum(self.explained.values())


@dataclass(frozen=True)
class ColumnFigures:
    name: str
    changed: int  # keys in which it differs
    unexplained: int
    largest: float | None = None  # difference of two numbers; of two times in seconds


@dataclass(frozen=True)
class Example:
    """One differing key; the rows as text, None where the side has none."""

    kind: Kind
    key: Shown
    left: Shown | None
    right: Shown | None
    changed: tuple[str, ...] = ()
    because: str = ""  # expected, late, not yet due; empty: unexplained


@dataclass(frozen=True, kw_only=True)
class Comparison:
    left: str
    right: str
    left_version: int
    right_version: int
    offsets: Places = field(default_factory=dict[str, Place])  # where both were
    key: tuple[str, ...]  # empty: rows are appended, and compared as a multiset
    expect: Mapping[str, str] = field(default_factory=dict[str, str])
    rows_left: int
    rows_right: int
    counts: Mapping[Kind, Count]
    columns: tuple[ColumnFigures, ...] = ()
    schema: tuple[SchemaDifference, ...] = ()
    doubled_left: int = 0  # keys that have several rows there
    doubled_right: int = 0
    examples: tuple[Example, ...] = ()
    unlisted: int = 0  # unexpected differences beyond those that are listed, and so could not be explained
    files: int = 0
    files_read: int = 0  # the others were known from an earlier comparison
    parts: int = 0
    parts_paired: int = 0  # those in which rows had to be set side by side
    seconds: float = 0.0

    @property
    def same(self) -> bool:
        return not self.schema and not self.differing and not self.doubled_left and not self.doubled_right

    @property
    def differing(self) -> int:
        return sum(count.found for count in self.counts.values())

    @property
    def unexplained(self) -> int:
        return sum(count.unexplained for count in self.counts.values())

    @property
    def explained(self) -> dict[str, int]:
        """All kinds together, by explanation."""
        found: dict[str, int] = {}
        for count in self.counts.values():
            for label, number in count.explained.items():
                found[label] = found.get(label, 0) + number
        return found

    def figures(self) -> dict[str, Any]:
        """As JSON can carry it, without the examples: they may be personal."""
        values = asdict(self)
        del values["examples"]
        return {**values, "differing": self.differing, "unexplained": self.unexplained, "explained": self.explained}
