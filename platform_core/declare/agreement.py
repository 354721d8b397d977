"""What declarations say of each other: outputs that two would write, published columns, suites' columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from platform_core.declare.batches import DailyTable
from platform_core.declare.checks import Suite
from platform_core.declare.jobs import StreamingJob
from platform_core.declare.publishing import Publish
from platform_core.declare.tables import Table

_NAMING = ("column", "column_A", "column_B", "column_list", "column_set")  # arguments of great-expectations


@dataclass(frozen=True)
class Declared:
    """All that a tree declares, but its topics."""

    jobs: dict[str, StreamingJob]
    daily_tables: dict[str, DailyTable]
    suites: dict[str, Suite]

    @property
    def tables(self) -> dict[str, Table]:
        return {one.output.name: one.output for one in (*self.daily_tables.values(), *self.jobs.values())}


def disagreements(declared: Declared) -> Iterator[tuple[str, str]]:
    """What is wrong, after what it is wrong with."""
    yield from _written_twice(declared)
    for job in declared.jobs.values():
        for publish in job.publishes:
            yield from ((f"job {job.name}", text) for text in _published(job, publish))
    for suite in declared.suites.values():
        yield from ((f"suite of {suite.table}", text) for text in _expected(suite, declared.tables))


def _written_twice(declared: Declared) -> Iterator[tuple[str, str]]:
    outputs = [one.output.name for one in (*declared.jobs.values(), *declared.daily_tables.values())]
    topics = [publish.topic.name for job in declared.jobs.values() for publish in job.publishes]
    for kind, names in (("table", outputs), ("topic", topics)):
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{kind}s", f"{kind} {name!r} is the output of {count} declarations. Give each its own."


def _published(job: StreamingJob, publish: Publish) -> Iterator[str]:
    """A topic's readers know its columns by its declaration."""
    if publish.value.format.is_one_column:
        return
    here = f"publish.topic {publish.topic.name!r}.value"
    own = {column.name: column.sql for column in job.output.columns}
    written = {name: own[name] for name in publish.value.names or own}
    told = {column.name: column.sql for column in publish.topic.columns}
    for name in dict.fromkeys([*written, *told]):
        was, came = told.get(name, "no such column"), written.get(name, "no such column")
        if was != came:
            yield f"{here}: column {name!r} is declared {was}, and published {came}."


def _expected(suite: Suite, tables: Mapping[str, Table]) -> Iterator[str]:
    table = tables.get(suite.table)
    if table is None:
        yield f"table: there is no table {suite.table!r}; declared are {', '.join(sorted(tables))}."
        return
    known = {column.name: column.sql for column in table.columns}
    if known.get(suite.newest_by) != "timestamp":
        came = known.get(suite.newest_by, "no such column")
        yield f"newest_by: {suite.newest_by!r} is to be a TIMESTAMP of the table, came {came}."
    for one in suite.expectations:
        for name in _named(one.arguments):
            if name not in known:
                yield f"expectation {one.name!r}: {name!r} is not a column; choose from {', '.join(sorted(known))}."


def _named(arguments: Mapping[str, Any]) -> Iterator[str]:
    for argument in _NAMING:
        value = arguments.get(argument, ())
        yield from (value,) if isinstance(value, str) else value
