"""Comparing whole tables: every row that is due is there, once, and no other."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]
_SHOWN = 5


@dataclass(frozen=True)
class Candidates:
    """One row that has to be there once: as it reads from which batch on; None: it is not there."""

    forms: Sequence[tuple[int, Row | None]]
    computed: Mapping[str, Any]

    @property
    def always(self) -> Row | None:
        """How it reads in the end; None where it may not be there at all."""
        return None if any(row is None for _, row in self.forms) else self.forms[-1][1]

    def fits(self, batch: int | None, row: Row) -> bool:
        """Whether the row may read so in that batch; None: nobody knows any more which batch wrote it."""
        if batch is None:
            return any(form == row for _, form in self.forms)
        at = bisect_right([moment for moment, _ in self.forms], batch) - 1
        return at >= 0 and self.forms[at][1] == row


@dataclass(frozen=True)
class Pending:
    """Rows that a further event has to bring out: those whose time the clock has not passed."""

    column: str | None
    passed_ms: int

    def waits(self, row: Mapping[str, Any]) -> bool:
        return self.column is not None and milliseconds(row[self.column]) >= self.passed_ms


@dataclass(frozen=True)
class Matching:
    actual: Sequence[tuple[int | None, Row]]
    expected: Sequence[Candidates]
    pending: Pending

    def differences(self) -> list[str]:
        left: dict[Row, list[Candidates]] = defaultdict(list)
        for one in self.expected:
            for row in {row for _, row in one.forms if row is not None}:
                left[row].append(one)
        used: set[int] = set()
        extra = [row for batch, row in self.actual if not self._taken(left[row], batch, row, used)]
        unseen = [one for one in self.expected if id(one) not in used and not self._waits(one)]
        missing = [row for one in unseen if (row := one.always) is not None]
        return [*_told("not in the batch", extra), *_told("not in the table", missing)]

    def _waits(self, one: Candidates) -> bool:
        return self.pending.waits(one.computed)

    @staticmethod
    def _taken(candidates: list[Candidates], batch: int | None, row: Row, used: set[int]) -> bool:
        for one in candidates:
            if id(one) not in used and one.fits(batch, row):
                used.add(id(one))
                return True
        return False


def unlike(there: Counter[Any], due: Counter[Any], what: str) -> list[str]:
    return [*_told(f"{what}: too many", (there - due).elements()), *_told(f"{what}: too few", (due - there).elements())]


def _told(what: str, rows: Iterable[Any]) -> list[str]:
    those = sorted(rows, key=repr)
    return [f"{what}: {len(those)} rows, as {row!r}" for row in those[:_SHOWN]]


def milliseconds(moment: Any) -> int:
    return round(moment.timestamp() * 1000)
