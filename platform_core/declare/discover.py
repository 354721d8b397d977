"""Finds what is declared by its place.

A job is `streaming_jobs/<name>/job.py`, a topic stands in `ingest/topics.py`, a daily table is
`analytics/<name>/table.py`, an expectation suite is `quality/<table>.py`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from platform_core.declare.batches import DailyTable
from platform_core.declare.checks import Suite
from platform_core.declare.jobs import StreamingJob
from platform_core.declare.topics import Topic
from platform_core.errors import DeclarationError, UsageError


def job_names(root: Path) -> list[str]:
    """The names of the job folders under `root`, the directory that holds `streaming_jobs`."""
    return sorted(path.parent.name for path in (root / "streaming_jobs").glob("*/job.py"))


def load_job(name: str, root: Path) -> StreamingJob:
    known = job_names(root)
    if name not in known:
        raise UsageError(f"There is no job {name!r}.", remedy=f"Jobs here: {', '.join(known) or 'none'}.")
    module = importlib.import_module(f"streaming_jobs.{name}.job")
    return _the_job(module, name)


def load_jobs(root: Path) -> dict[str, StreamingJob]:
    return {name: load_job(name, root) for name in job_names(root)}


def load_topics() -> dict[str, Topic]:
    module = importlib.import_module("ingest.topics")
    found: dict[str, Topic] = {}
    for constant, value in vars(module).items():
        if isinstance(value, Topic) and found.setdefault(value.name, value) != value:
            raise DeclarationError(
                f"ingest/topics.py: {constant} declares topic {value.name!r} again, otherwise.",
                remedy="Declare each topic once.",
            )
    return found


def load_daily_tables(root: Path) -> dict[str, DailyTable]:
    found: dict[str, DailyTable] = {}
    for path in sorted((root / "analytics").glob("*/table.py")):
        module = importlib.import_module(f"analytics.{path.parent.name}.table")
        found |= {value.name: value for value in vars(module).values() if isinstance(value, DailyTable)}
    return found


def load_suites(root: Path) -> dict[str, Suite]:
    found: dict[str, Suite] = {}
    for path in sorted((root / "quality").glob("[a-z]*.py")):
        module = importlib.import_module(f"quality.{path.stem}")
        found |= {value.table: value for value in vars(module).values() if isinstance(value, Suite)}
    return found


def _the_job(module: ModuleType, name: str) -> StreamingJob:
    jobs = [value for value in vars(module).values() if isinstance(value, StreamingJob)]
    if len(jobs) != 1 or jobs[0].name != name:
        raise DeclarationError(
            f"streaming_jobs/{name}/job.py: it declares {[job.name for job in jobs]}, not one job named {name!r}.",
            remedy="Declare one StreamingJob there, named like its folder.",
        )
    return jobs[0]
