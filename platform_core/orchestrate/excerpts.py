"""What a page shows of a job's releases and of its table's rows, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.declare import Table
from platform_core.orchestrate.platform import Platform
from platform_core.read.tables import LiveTable

ROWS, RELEASES = 5, 10
_LONGEST = 60  # characters of a value or a reason


def history(platform: Platform, job: str) -> dg.MarkdownMetadataValue:
    """The newest releases first; the whole audit is `weir history JOB`."""
    return dg.MetadataValue.md(history_table(releases.of_job(platform.store, job)))


def history_table(known: Sequence[Release]) -> str:
    head = ("release", "state", "since", "made", "by", "reason")
    lines = [
        (one.title, one.state, _time(one.changed_at), _time(one.created_at), one.created_by, one.reason)
        for one in reversed(known[-RELEASES:])
    ]
    return _table(head, lines)


def some_rows(platform: Platform, job: str, live: LiveTable) -> dg.MarkdownMetadataValue:
    """A few rows as they stand in the table; of personal columns no value leaves it."""
    if not live.place.has_table():
        return dg.MetadataValue.md("nothing is written yet")
    declared = platform.jobs[job].output
    shown = [name for name in live.columns if name not in declared.personal]
    return dg.MetadataValue.md(
        rows_table(declared, live.delta.to_pyarrow_dataset().head(ROWS, columns=shown).to_pylist())
    )


def rows_table(declared: Table, rows: Iterable[Mapping[str, Any]]) -> str:
    names = [column.name for column in declared.columns]
    return _table(names, ([row.get(name, "(personal)") for name in names] for row in rows))


def _time(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    made = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in made)


def _cell(value: object) -> str:
    text = " ".join(str(value).replace("|", "\\|").split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
