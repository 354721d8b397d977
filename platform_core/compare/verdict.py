"""From numbers and expectation to a verdict with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from platform_core.compare.comparison import Comparison, Kind
from platform_core.declare.expected import ROWS, expected


@dataclass(frozen=True)
class Verdict:
    passed: bool
    reasons: tuple[str, ...]  # why not; none when it passed
    notes: tuple[str, ...] = ()  # what a person should know all the same

    @property
    def word(self) -> str:
        return "pass" if self.passed else "fail"


def verdict(found: Comparison) -> Verdict:
    """Passes when every difference was expected or is explained."""
    reasons = (*_schema(found), *_doubled(found), *_rows(found), *_columns(found))
    return Verdict(not reasons, reasons, tuple(_notes(found)))


def _schema(found: Comparison) -> Iterator[str]:
    return (str(one) for one in found.schema if not one.expected)


def _doubled(found: Comparison) -> Iterator[str]:
    if found.doubled_right:
        yield f"{counted(found.doubled_right, 'key')} {_has(found.doubled_right)} several rows in {found.right}"


def _rows(found: Comparison) -> Iterator[str]:
    noun = "key" if found.key else "row"
    places: tuple[tuple[Kind, str], ...] = (("only left", found.left), ("only right", found.right))
    for kind, release in places:
        count = found.counts[kind].unexplained
        if count:
            yield f"{counted(count, noun)} {'is' if count == 1 else 'are'} only in {release}"


def _columns(found: Comparison) -> Iterator[str]:
    """Each column that differs; where it is not known which ones remain, the number of keys alone."""
    for column in found.columns:
        if column.unexplained > 0:
            largest = "" if column.largest is None else f", by {column.largest:.6g} at most"
            yield f"{column.name} differs in {counted(column.unexplained, 'key')}{largest}"


def _notes(found: Comparison) -> Iterator[str]:
    if not found.rows_left and not found.rows_right:
        yield "both tables are empty"
    for label, count in sorted(found.explained.items()):
        yield f"{counted(count, 'difference')} explained: {label}"
    if found.doubled_left:
        yield f"{counted(found.doubled_left, 'key')} {_has(found.doubled_left)} several rows in {found.left}"
    if found.unlisted:
        yield f"{counted(found.unlisted, 'difference')} beyond those that are listed: none was explained"
    yield from (str(one) + ", as expected" for one in found.schema if one.expected)
    yield from _expectations(found)


def _expectations(found: Comparison) -> Iterator[str]:
    changed = {column.name: column.changed for column in found.columns}
    for name, text in found.expect.items():
        if name == ROWS:
            yield from _row_expectations(found, text)
        elif expected(text, name).what in ("changes", "within") and not _of_schema(found, name):
            count = changed.get(name, 0)
            met = f"differs in {counted(count, 'key')}" if count else "differs nowhere"
            yield f"{name} {met}; expected: {text}"
        elif not _of_schema(found, name):
            yield f"{name} is on both sides or on none; expected: {text}"


def _row_expectations(found: Comparison, text: str) -> Iterator[str]:
    allowed = expected(text, ROWS)
    kinds: Mapping[Kind, bool] = {"only left": allowed.rows_may_go, "only right": allowed.rows_may_come}
    for kind, may in kinds.items():
        if may:
            release = found.left if kind == "only left" else found.right
            yield f"{counted(found.counts[kind].found, 'row')} only in {release}; expected: {text}"


def _of_schema(found: Comparison, name: str) -> bool:
    return any(one.column == name for one in found.schema)


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
