"""A comparison as one HTML page that needs nothing else: verdict, figures, and the differing rows side by side.

Every value is escaped: rows hold what producers sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from platform_core.compare.comparison import KINDS, Comparison, Example, Kind
from platform_core.compare.verdict import Verdict, counted
from platform_core.control.position import told


@dataclass(frozen=True)
class _Table:
    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[object]]


def page(found: Comparison, verdict: Verdict, at: datetime) -> str:
    folder = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template("report.html.j2").render(
        title=f"{found.left} and {found.right}",
        found=found,
        verdict=verdict,
        at=at,
        where=_where(found),
        work=_work(found),
        tables=[_rows(found), _counts(found), _columns(found), _schema(found)],
        kinds=[
            (kind, name_of(found, kind).capitalize(), found.counts[kind].found)
            for kind in KINDS
            if kind in found.counts
        ],
        columns_of=_columns_of,
    )


def _where(found: Comparison) -> str:
    versions = f"Delta versions {found.left_version} and {found.right_version}"
    return f"{versions}, both at {told(found.offsets)}" if found.offsets else versions


def _work(found: Comparison) -> str:
    return f"{found.files_read:,} of {counted(found.files, 'file')} read, {found.seconds:.1f} s"


def _rows(found: Comparison) -> _Table:
    return _Table("Rows", ("", found.left, found.right), [("rows", found.rows_left, found.rows_right)])


def _counts(found: Comparison) -> _Table:
    labels = sorted(found.explained)
    rows = [
        (
            name_of(found, kind),
            count.found,
            count.found - count.unexpected,
            *(count.explained.get(label, 0) for label in labels),
            count.unexplained,
        )
        for kind, count in found.counts.items()
    ]
    what = "keys" if found.key else "rows"
    return _Table("Differences", (what, "found", "expected", *labels, "unexplained"), rows)


def _columns(found: Comparison) -> _Table:
    rows = [
        (one.name, one.changed, one.unexplained, "" if one.largest is None else f"{one.largest:.6g}")
        for one in found.columns
        if one.changed
    ]
    return _Table("Columns that differ", ("column", "keys", "unexplained", "largest difference"), rows)


def _schema(found: Comparison) -> _Table:
    rows = [(one.column, one.left or "", one.right or "", "yes" if one.expected else "no") for one in found.schema]
    return _Table("Schema", ("column", found.left, found.right, "expected"), rows)


def _columns_of(one: Example) -> list[str]:
    """Those that differ first, without the key, which is the caption."""
    names = [name for name in (one.left or one.right or {}) if name not in one.key]
    return sorted(names, key=lambda name: name not in one.changed)


def name_of(found: Comparison, kind: Kind) -> str:
    return {"only left": f"only in {found.left}", "only right": f"only in {found.right}"}.get(kind, kind)


def lines(found: Comparison, verdict: Verdict) -> Iterable[str]:
    """A summary for a terminal, beside its tables."""
    yield f"{found.left} and {found.right}: {_where(found)}"
    yield f"{found.rows_left:,} and {found.rows_right:,} rows; {_work(found)}"
    yield f"verdict: {verdict.word}"
    yield from (f"  - {one}" for one in verdict.reasons)
    yield from (f"  ({one})" for one in verdict.notes)
