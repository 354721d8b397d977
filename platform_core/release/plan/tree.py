"""What a tree declares of one job, and who in the tree reads what the job writes.

`python -m platform_core.release.plan.tree JOB` prints it: asked in a process of its own, of the tree it runs in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from platform_core.archived.rows import ROWS_VERSION
from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_daily_tables, load_job, load_jobs, load_suites
from platform_core.release.declared import declared
from platform_core.release.describe import asked
from platform_core.settings import Settings


@dataclass(frozen=True)
class TableReader:
    """Something declared that reads the job's table or output topic."""

    kind: str  # job, daily table, suite
    name: str
    reads: str


@dataclass(frozen=True)
class Tree:
    declared: dict[str, Any]
    rows_version: int
    downstream: tuple[TableReader, ...]


def tree_of(settings: Settings, job: str) -> Tree:
    """The working tree's."""
    told = asked(settings.root, settings, "platform_core.release.plan.tree", job)
    return Tree(told["declared"], told["rows_version"], tuple(TableReader(**one) for one in told["downstream"]))


def downstream(job: StreamingJob, root: Path) -> Iterator[TableReader]:
    topics = {publish.topic.name for publish in job.publishes}
    for other in load_jobs(root).values():
        for name, part in other.of_topics.items():
            if part.reads in topics:
                yield TableReader("job", other.name, f"topic {part.reads} as {name}")
    for daily in load_daily_tables(root).values():
        if daily.input.reads in topics:
            yield TableReader("daily table", daily.name, f"topic {daily.input.reads}")
    for suite in load_suites(root).values():
        if suite.table == job.output.name:
            yield TableReader("suite", suite.table, f"table {suite.table}")


def main(name: str) -> None:
    root = Path(__file__).resolve().parents[3]
    job = load_job(name, root)
    readers = [asdict(one) for one in downstream(job, root)]
    print(json.dumps({"declared": declared(job), "rows_version": ROWS_VERSION, "downstream": readers}))


if __name__ == "__main__":
    main(sys.argv[1])
