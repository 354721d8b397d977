"""A plan in words: for a terminal, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from platform_core.compare.comparison import ColumnFigures, Example, Shown
from platform_core.control import catch_up
from platform_core.release.plan.changes import ChangeKind, DeclaredChange
from platform_core.release.plan.plan import Plan, Touched
from platform_core.release.plan.reading import Reading, TopicReading

if TYPE_CHECKING:
    from platform_core.release.plan.trial import Trial

_MEANS = {
    ChangeKind.NONE: "The live release runs this code already.",
    ChangeKind.REVISION: "State and table stay: `weir release {job} --revision` puts it in force.",
    ChangeKind.REPLAY: "Rows would differ: `weir release {job}` replays history beside the live release.",
}
TOPICS = ("topic", "records", "bytes", "oldest record", "kept until")


def headline(plan: Plan) -> str:
    against = f"compared with {plan.live}" if plan.live else "nothing is live"
    return f"{plan.job}: {plan.kind.value}, {against}"


def meaning(plan: Plan) -> str:
    means = "`weir start {job}` makes the first release." if plan.live is None else _MEANS[plan.kind]
    return means.format(job=plan.job)


def reason(one: DeclaredChange) -> str:
    return f"{one}  [{one.where}]" if one.where else str(one)


def topic_rows(reading: Reading) -> list[tuple[str, str, str, str, str]]:
    rows = [(one.topic, f"{one.records:,}", size(one.bytes), _oldest(one), _kept(one)) for one in reading.topics]
    return [*rows, ("in all", f"{reading.records:,}", size(reading.bytes), "", "")] if len(rows) > 1 else rows


def costs(plan: Plan) -> Iterator[str]:
    if plan.reading is not None and any(one.sampled for one in plan.reading.topics):
        sampled = sum(one.sampled for one in plan.reading.topics)
        yield f"bytes: an estimate from {sampled:,} sampled records, before compression"
    if plan.time is not None:
        hours = "not known" if plan.time.hours is None else f"about {duration(plan.time.hours)}, an estimate"
        yield f"time: {hours} ({plan.time.basis})"
    if plan.room is not None:
        free = "" if plan.room.free is None else f", {size(plan.room.free)} are free"
        yield f"disk: {_about(plan.room.bytes)} ({plan.room.basis}){free}"


def touches(touched: Touched) -> Iterator[str]:
    yield f"table {touched.table}"
    yield from (f"topic {name}" for name in touched.topics)
    yield from (f"client {name}" for name in touched.clients)
    yield from (f"{one.kind} {one.name}, which reads {one.reads}" for one in touched.downstream)


def text(plan: Plan, table: str = "") -> str:
    """`table` is the topics' one, as the terminal lays it out."""
    lines = [headline(plan), f"  {meaning(plan)}"]
    for kind in (ChangeKind.REPLAY, ChangeKind.REVISION):
        lines += _section(f"{kind.value}:", [reason(one) for one in plan.changes if one.kind is kind])
    if table:
        lines += _section("a replay from the earliest reads:", [*table.splitlines(), *costs(plan)])
    if plan.touched is not None:
        lines += _section("touched by a cutover:", list(touches(plan.touched)))
    return "\n".join([*lines, *_section("know:", list(plan.notes))])


def markdown(plan: Plan) -> str:
    lines = [f"### `{plan.job}`: {plan.kind.value}", "", f"{headline(plan)}. {meaning(plan)}"]
    if plan.changes:
        lines += ["", *_grid(("", "what changed", "where"), [_cells(one) for one in plan.changes])]
    if plan.reading is not None:
        lines += ["", "**A replay from the earliest reads**", "", *_grid(TOPICS, topic_rows(plan.reading))]
    lines += _bullets("", list(costs(plan)))
    if plan.touched is not None:
        lines += _bullets("**Touched by a cutover**", list(touches(plan.touched)))
    return "\n".join([*lines, *_bullets("**Know**", list(plan.notes))])


def trial(found: Trial) -> Iterator[str]:
    yield _over(found)
    one = found.comparison
    if one.same:
        yield f"{one.rows_left:,} rows on either side, and none differs"
        return
    yield f"{one.rows_left:,} rows of {one.left}, {one.rows_right:,} of the {one.right}; {one.differing:,} differ"
    yield from (f"{kind}: {count.found:,}" for kind, count in one.counts.items() if count.found)
    yield from (str(difference) for difference in one.schema)
    yield from (_column(column) for column in one.columns if column.changed)
    if one.explained:
        cut = ", ".join(f"{count:,} {label}" for label, count in one.explained.items())
        yield f"of these {cut}: both sides lack the same records there, so those are not shown"


def examples(found: Trial, *, public: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A line for each differing column of a key: what the live release has, and what the tree has.

    `public`: without the values of personal columns.
    """
    shown = [one for one in found.comparison.examples if not one.because or one.because == "expected"]
    key = found.comparison.key
    hidden = set(found.personal) if public else set[str]()
    rows = [line for one in shown for line in _lines(one, key, hidden)]
    return (*(key or ("row",)), "column", found.comparison.left, found.comparison.right), rows


def text_trial(found: Trial, table: str) -> str:
    lines = [*trial(found), *(["", *table.splitlines()] if table else [])]
    return "\n".join(_section("both transforms as batches:", lines))


def markdown_trial(found: Trial) -> list[str]:
    names, rows = examples(found, public=True)
    grid = ["", *_grid(names, rows)] if rows else []
    return [*_bullets("**Both transforms as batches**", list(trial(found))), *grid]


def _lines(one: Example, key: Sequence[str], hidden: set[str]) -> Iterator[tuple[str, ...]]:
    named = [_value(one.key, name, hidden) for name in key] or [_whole(one, hidden)]
    if one.kind == "changed":
        for column in one.changed:
            yield *named, column, _value(one.left, column, hidden), _value(one.right, column, hidden)
    else:
        yield *named, "", *(("there", "") if one.kind == "only left" else ("", "there"))


def _whole(one: Example, hidden: set[str]) -> str:
    row = one.left or one.right or {}
    return ", ".join(f"{name}={_value(row, name, hidden)}" for name in row)


def _value(row: Shown | None, name: str, hidden: set[str]) -> str:
    if name in hidden:
        return "(personal)"
    value = (row or {}).get(name)
    return "null" if value is None else value


def _column(one: ColumnFigures) -> str:
    largest = "" if one.largest is None else f", by {one.largest:g} at most"
    return f"column {one.name}: {one.changed:,} keys{largest}"


def _over(found: Trial) -> str:
    covers = found.range.covers.total_seconds() / 3600
    cut = "; there are more, that is as many as it takes at once" if found.range.cut else ""
    until = moment(found.range.until_ms)
    return f"over {found.range.records:,} records, {duration(covers)} up to {until}{cut} ({found.seconds:.0f} s)"


def size(count: int | None) -> str:
    if count is None:
        return "not known"
    amount, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}" if units[0] != "bytes" else f"{count} bytes"


def duration(hours: float) -> str:
    return catch_up.duration(hours * 3600)


def moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _about(count: int | None) -> str:
    return "not known" if count is None else f"about {size(count)}, an estimate"


def _oldest(one: TopicReading) -> str:
    offsets = "/".join(str(offset) for _, offset in sorted(one.oldest_offsets.items()))
    return f"offset {offsets}" + ("" if one.oldest_at_ms is None else f", {moment(one.oldest_at_ms)}")


def _kept(one: TopicReading) -> str:
    if one.compacted:
        return "for ever, the newest of each key"
    if one.retention_ms < 0:
        return "for ever"
    return "not known" if one.kept_until_ms is None else f"{moment(one.kept_until_ms)}, then records go"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"  {title}", *(f"    {line}" for line in lines)] if lines else []


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return ["", *([title, ""] if title else []), *(f"- {line}" for line in lines)] if lines else []


def _cells(one: DeclaredChange) -> tuple[str, str, str]:
    return one.kind.value, str(one), f"`{one.where}`" if one.where else ""


def _grid(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_grid_line(line) for line in (names, ["---"] * len(names), *rows)]


def _grid_line(cells: Sequence[str]) -> str:
    safe = [cell.replace("|", r"\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(safe)} |"
