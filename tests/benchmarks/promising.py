"""The tree with jobs that promise another freshness than their authors had in mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from platform_core.release import contents
from tests.benchmarks.platform import Platform


def promising(ours: Platform, updates_every: str, jobs: Sequence[str]) -> Platform:
    """The same platform; what is released in it from now on says `updates_every`."""
    tree = ours.settings.home / "tree"
    contents.copy(ours.settings.root, tree)
    for job in jobs:
        with (tree / "streaming_jobs" / job / "job.py").open("a") as code:
            code.write(f"\n{job} = __import__('dataclasses').replace({job}, updates_every={updates_every!r})\n")
    return replace(ours, settings=ours.settings.model_copy(update={"root": tree}))
