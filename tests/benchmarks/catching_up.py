"""Runs that read a history: started, watched by their checkpoint, stopped; with the time and CPU that they took."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from platform_core.broker import Broker
from platform_core.control.owners import Owner
from platform_core.control.position import Offsets, as_numbers, records_between
from platform_core.declare import StreamingJob
from platform_core.release.archive import command_for
from platform_core.release.first import first_release
from platform_core.services import process
from platform_core.services.service import tail
from tests.benchmarks.platform import Platform

PATIENCE = 600.0


@dataclass(frozen=True)
class Run:
    """From the moment the first batch was planned to the last batch's commit: no start of Python, JVM and session."""

    records: int
    seconds: float
    cpu_seconds: float
    batches: int

    @property
    def per_second(self) -> float:
        return self.records / self.seconds


def weir(platform: Platform, job: StreamingJob) -> Run:
    """The real driver, from a release frozen now, until its checkpoint has reached the topics' ends."""
    release = first_release(job.name, platform.settings, platform.store, "benchmark").id
    argv, env = command_for(platform.settings, release)
    log = platform.settings.storage.logs / f"driver-{release}.log"
    with started(argv, env, log, platform.settings.home) as child:
        return watched(platform, job, Path(platform.settings.storage.checkpoint(release).uri), child, log)


def bare(platform: Platform, job: StreamingJob, query: str) -> Run:
    """A query of bare.py in a process of its own."""
    from sys import executable

    settings = platform.settings
    place = settings.home / "bare" / f"{job.name}-{query}-{time.monotonic_ns()}"
    argv = [executable, "-m", "tests.benchmarks.bare", job.name, query, str(place)]
    env = {**settings.child_environment(), "PYTHONPATH": str(settings.root)}
    log = settings.storage.logs / f"bare-{job.name}-{query}.log"
    with started(argv, env, log, settings.home) as child:
        return watched(platform, job, place / "checkpoint", child, log)


@contextmanager
def started(
    argv: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    cwd: Path,
    stop_with: signal.Signals = signal.SIGTERM,
    seconds: float = 60,
) -> Generator[subprocess.Popen[bytes]]:
    child = process.spawn(argv, env, log, cwd)
    owner = Owner.of(child.pid)
    try:
        yield child
    finally:
        process.stop(owner, stop_with, seconds, child.poll)


def watched(platform: Platform, job: StreamingJob, checkpoint: Path, child: subprocess.Popen[bytes], log: Path) -> Run:
    """Until a committed batch ends where the topics end."""
    ends = _ends(platform, job)
    _wait(lambda: (checkpoint / "offsets" / "0").exists(), child, log)
    before = cpu_seconds(child.pid)
    planned_ms = json.loads((checkpoint / "offsets" / "0").read_text().splitlines()[1])["batchTimestampMs"]
    _wait(lambda: _read_to(_newest(checkpoint), ends, job), child, log)
    used = cpu_seconds(child.pid) - before
    last = next(batch for batch in _batches(checkpoint, "commits") if _read_to(_at(checkpoint, batch), ends, job))
    seconds = (checkpoint / "commits" / str(last)).stat().st_mtime - planned_ms / 1000
    return Run(records_between({}, ends), seconds, used, last + 1)


def reached(platform: Platform, job: StreamingJob, checkpoint: Path) -> bool:
    """Whether the newest committed batch ends where the topics end now."""
    return _read_to(_newest(checkpoint), _ends(platform, job), job)


def cpu_seconds(pid: int) -> float:
    """Of a process and all its children, the ended ones included."""
    return cpu([psutil.Process(pid), *psutil.Process(pid).children(recursive=True)])


def cpu(those: Iterable[psutil.Process]) -> float:
    """Seconds, with those of children that have ended; a process that is gone counts nothing."""
    total = 0.0
    for one in those:
        try:
            times = one.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _ends(platform: Platform, job: StreamingJob) -> Offsets:
    return Broker(platform.settings).ends({topic.name: range(topic.partitions) for topic in job.topics})


def _read_to(position: Offsets, ends: Offsets, job: StreamingJob) -> bool:
    """Whether all that a query streams is read: bare ones read lookups otherwise."""
    events = {part.topic.name for part in job.streams.values()}
    return events <= position.keys() and all(position[topic] == ends[topic] for topic in position)


def _newest(checkpoint: Path) -> Offsets:
    done = _batches(checkpoint, "commits")
    return _at(checkpoint, done[-1]) if done else {}


def _at(checkpoint: Path, batch: int) -> Offsets:
    found: dict[str, dict[int, int]] = {}
    for line in (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]:
        found |= as_numbers(json.loads(line)) if line != "-" else {}
    return found


def _batches(checkpoint: Path, log: str) -> list[int]:
    folder = checkpoint / log
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def _wait(condition: Callable[[], bool], child: subprocess.Popen[bytes], log: Path) -> None:
    met = process.until(lambda: child.poll() is not None or condition(), PATIENCE)
    if not met or not condition():
        ended = f"ended with code {child.poll()}" if child.poll() is not None else f"took more than {PATIENCE:.0f} s"
        raise RuntimeError(f"The run {ended}.{tail(log, 10)}")
