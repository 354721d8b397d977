"""Finds what is declared by its place: a job is `streaming_jobs/<name>/job.py`, a topic stands in `ingest/topics.py`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

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
    return {value.name: value for value in vars(module).values() if isinstance(value, Topic)}


def _the_job(module: ModuleType, name: str) -> StreamingJob:
    jobs = [value for value in vars(module).values() if isinstance(value, StreamingJob)]
    if len(jobs) != 1 or jobs[0].name != name:
        raise DeclarationError(
            f"streaming_jobs/{name}/job.py: it declares {[job.name for job in jobs]}, not one job named {name!r}.",
            remedy="Declare one StreamingJob there, named like its folder.",
        )
    return jobs[0]
