"""A driver at work on what a generator sends now."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from platform_core.control import progress
from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_job
from platform_core.names import ReleaseId
from platform_core.release.archive import command_for
from platform_core.release.first import first_release
from platform_core.services import process
from platform_core.services.service import tail
from tests.benchmarks.catching_up import started
from tests.benchmarks.platform import Platform

GENERATOR = {"stock_stats": "stocks", "word_count": "lines", "clickstream": "clicks"}
START_SECONDS, PATIENCE = 120.0, 600.0


@dataclass(frozen=True)
class Live:
    job: StreamingJob
    release: ReleaseId
    process: subprocess.Popen[bytes]


@contextmanager
def driver(ours: Platform, name: str) -> Generator[Live]:
    """The job's first release; at work, with its first batch planned or waiting for records, when this returns."""
    settings, job = ours.settings, load_job(name, ours.settings.root)
    release = first_release(name, settings, ours.store, "benchmark").id
    argv, env = command_for(settings, release)
    log = settings.storage.logs / f"driver-{release}.log"
    with started(argv, env, log, settings.home) as child:
        process.until(lambda: child.poll() is not None or '"running"' in log.read_text(), START_SECONDS)
        if child.poll() is not None:
            raise RuntimeError(f"The driver of {release} ended with code {child.poll()}.{tail(log, 10)}")
        yield Live(job, release, child)


def await_first_batch(ours: Platform, lives: Sequence[Live]) -> None:
    """Until each has committed records: from then on a warm-up is as long on a slow machine as on a fast one."""

    def begun() -> bool:
        known = progress.latest(ours.store)
        return all(live.release in known and known[live.release].totals["records_in"] for live in lives)

    awaited(begun, "records in a commit of each", START_SECONDS)


def send_history(ours: Platform, name: str, rate: float, seconds: float) -> None:
    """Records of the last so many seconds, as fast as it goes."""
    start = int((time.time() - seconds) * 1000)
    argv = [sys.executable, "-m", "ingest.generators", GENERATOR[name], "--rate", str(rate), "--seconds", str(seconds)]
    env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
    subprocess.run([*argv, "--start-ms", str(start)], env=env, cwd=ours.settings.home, check=True, capture_output=True)


@contextmanager
def sender(ours: Platform, name: str, rate: float) -> Generator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "ingest.generators", GENERATOR[name], "--rate", str(rate)]
    env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
    with started(argv, env, ours.settings.storage.logs / f"sender-{name}.log", ours.settings.home) as child:
        yield child


def awaited(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Returns when the condition holds; a failure that says what did not come."""
    if not process.until(condition, seconds):
        raise RuntimeError(f"Not within {seconds:.0f} s: {what}.")
