"""A plan in words: for a terminal, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from platform_core.release.plan.changes import Change, Kind
from platform_core.release.plan.plan import Plan, Touched
from platform_core.release.plan.reading import Reading, TopicReading

_MEANS = {
    Kind.NONE: "The live release runs this code already.",
    Kind.REVISION: "State and table stay: `weir release {job} --revision` puts it in force.",
    Kind.REPLAY: "Rows would differ: `weir release {job}` replays history beside the live release.",
}
TOPICS = ("topic", "records", "bytes", "oldest record", "kept until")


def headline(plan: Plan) -> str:
    against = f"compared with {plan.live}" if plan.live else "nothing is live"
    return f"{plan.job}: {plan.kind.value}, {against}"


def meaning(plan: Plan) -> str:
    means = "`weir start {job}` makes the first release." if plan.live is None else _MEANS[plan.kind]
    return means.format(job=plan.job)


def reason(one: Change) -> str:
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
    if touched.topic:
        yield f"topic {touched.topic}"
    yield from (f"client {name}" for name in touched.clients)
    yield from (f"{one.kind} {one.name}, which reads {one.reads}" for one in touched.downstream)


def text(plan: Plan, table: str = "") -> str:
    """`table` is the topics' one, as the terminal lays it out."""
    lines = [headline(plan), f"  {meaning(plan)}"]
    for kind in (Kind.REPLAY, Kind.REVISION):
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


def size(count: int | None) -> str:
    if count is None:
        return "not known"
    amount, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}" if units[0] != "bytes" else f"{count} bytes"


def duration(hours: float) -> str:
    seconds = hours * 3600
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if hours < 1.5 else f"{hours:.1f} hours"


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


def _cells(one: Change) -> tuple[str, str, str]:
    return one.kind.value, str(one), f"`{one.where}`" if one.where else ""


def _grid(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_grid_line(line) for line in (names, ["---"] * len(names), *rows)]


def _grid_line(cells: Sequence[str]) -> str:
    safe = [cell.replace("|", r"\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(safe)} |"
