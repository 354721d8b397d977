"""A comparison as one HTML page that needs nothing else: verdict, figures, and the differing rows side by side.

Every value is escaped: rows hold what producers sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from platform_core.control.position import told
from platform_core.release.compare.comparison import KINDS, Comparison, Example, Kind, Shown
from platform_core.release.compare.verdict import Verdict, counted

_STYLE = """
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #667085; --back: #ffffff; --text: #1a1f29;
  --old: #fdecea; --new: #e8f5ec; --ok: #17803d; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --line: #3a4150; --soft: #98a2b3; --back: #14171d; --text: #e6e9ef;
  --old: #4a2320; --new: #1d3d29; --ok: #4ade80; --bad: #ff8a7d; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem;
  background: var(--back); color: var(--text); }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, li { margin: .25rem 0; } .soft { color: var(--soft); }
.verdict { border-left: .3rem solid; padding: .25rem 0 .25rem 1rem; margin: 1.25rem 0; }
.pass { border-color: var(--ok); } .fail { border-color: var(--bad); }
.pass strong { color: var(--ok); } .fail strong { color: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; } td.number, th.number { text-align: right; }
.pair { width: 100%; table-layout: fixed; margin-bottom: 1.25rem; }
.pair caption { text-align: left; font-weight: 600; padding: .25rem .75rem; overflow-wrap: anywhere; }
.pair th:first-child { width: 22%; }
td.value { font-family: ui-monospace, monospace; font-size: .9em; white-space: pre-wrap; }
tr.differs td.old { background: var(--old); } tr.differs td.new { background: var(--new); }
.null { color: var(--soft); font-style: italic; } .because { color: var(--soft); font-weight: 400; }
"""


def page(found: Comparison, verdict: Verdict, at: datetime) -> str:
    title = f"{found.left} and {found.right}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(_where(found))}<br>{escape(_work(found))} · {at:%Y-%m-%d %H:%M:%S} UTC</p>',
        _verdict(verdict),
        _table("Rows", ("", found.left, found.right), [("rows", found.rows_left, found.rows_right)]),
        _counts(found),
        _columns(found),
        _schema(found),
        *(_examples(found, kind) for kind in KINDS),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    head = f"<head>{head}<style>{_STYLE}</style></head>"
    return f"<!doctype html>\n<html lang=en>{head}\n<body>{''.join(body)}</body></html>\n"


def _where(found: Comparison) -> str:
    versions = f"Delta versions {found.left_version} and {found.right_version}"
    return f"{versions}, both at {told(found.offsets)}" if found.offsets else versions


def _work(found: Comparison) -> str:
    return f"{found.files_read:,} of {counted(found.files, 'file')} read, {found.seconds:.1f} s"


def _verdict(verdict: Verdict) -> str:
    said = "Pass" if verdict.passed else "Fail"
    reasons = "".join(f"<li>{escape(one)}</li>" for one in verdict.reasons)
    notes = "".join(f'<li class="soft">{escape(one)}</li>' for one in verdict.notes)
    why = "" if verdict.reasons else "<p>Every difference was expected or is explained.</p>" if verdict.notes else ""
    why = why if verdict.reasons or verdict.notes else "<p>No difference.</p>"
    return f'<div class="verdict {verdict.word}"><strong>{said}</strong>{why}<ul>{reasons}{notes}</ul></div>'


def _counts(found: Comparison) -> str:
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
    return _table("Differences", (what, "found", "expected", *labels, "unexplained"), rows)


def _columns(found: Comparison) -> str:
    rows = [
        (one.name, one.changed, one.unexplained, "" if one.largest is None else f"{one.largest:.6g}")
        for one in found.columns
        if one.changed
    ]
    return _table("Columns that differ", ("column", "keys", "unexplained", "largest difference"), rows)


def _schema(found: Comparison) -> str:
    rows = [(one.column, one.left or "", one.right or "", "yes" if one.expected else "no") for one in found.schema]
    return _table("Schema", ("column", found.left, found.right, "expected"), rows)


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    numbers = [all(isinstance(row[at], int) for row in rows) for at in range(len(names))]
    kind = ['class="number"' if one else "" for one in numbers]
    head = "".join(f"<th {kind[at]}>{escape(name)}</th>" for at, name in enumerate(names))
    lines = "".join(
        "<tr>" + "".join(f"<td {kind[at]}>{_cell(value)}</td>" for at, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
    return f"<h2>{escape(title)}</h2>{table}"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _examples(found: Comparison, kind: Kind) -> str:
    chosen = [one for one in found.examples if one.kind == kind]
    if not chosen:
        return ""
    total = found.counts[kind].found
    shown = f"{len(chosen)} of {total:,}" if total > len(chosen) else f"{total:,}"
    title = f"<h2>{escape(name_of(found, kind).capitalize())} <span class=because>({shown})</span></h2>"
    return title + "".join(_pair(found, one) for one in chosen)


def _pair(found: Comparison, one: Example) -> str:
    names = list((one.left or one.right or {}).keys())
    first = sorted(names, key=lambda name: name not in one.changed)
    because = f' <span class="because">{escape(one.because)}</span>' if one.because else ""
    key = ", ".join(f"{name} = {value}" for name, value in one.key.items())
    head = f"<tr><th>column</th><th>{escape(found.left)}</th><th>{escape(found.right)}</th></tr>"
    lines = "".join(_line(name, one) for name in first if name not in one.key)
    caption = f"<caption>{escape(key)}{because}</caption>"
    return f'<table class="pair">{caption}<thead>{head}</thead><tbody>{lines}</tbody></table>'


def _line(name: str, one: Example) -> str:
    differs = ' class="differs"' if name in one.changed or one.left is None or one.right is None else ""
    cells = f'<td class="value old">{_value(one.left, name)}</td><td class="value new">{_value(one.right, name)}</td>'
    return f"<tr{differs}><td>{escape(name)}</td>{cells}</tr>"


def _value(row: Shown | None, name: str) -> str:
    if row is None:
        return '<span class="null">no row</span>'
    value = row[name]
    return '<span class="null">null</span>' if value is None else escape(value)


def name_of(found: Comparison, kind: Kind) -> str:
    return {"only left": f"only in {found.left}", "only right": f"only in {found.right}"}.get(kind, kind)


def lines(found: Comparison, verdict: Verdict) -> Iterable[str]:
    """The gist, for a terminal, beside its tables."""
    yield f"{found.left} and {found.right}: {_where(found)}"
    yield f"{found.rows_left:,} and {found.rows_right:,} rows; {_work(found)}"
    yield f"verdict: {verdict.word}"
    yield from (f"  - {one}" for one in verdict.reasons)
    yield from (f"  ({one})" for one in verdict.notes)
