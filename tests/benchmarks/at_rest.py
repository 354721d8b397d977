"""What streams cost to which little comes: the demo at its usual rates, ten minutes after its first results."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import psutil

from platform_core.control import positions, progress, releases
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import cpu, cpu_seconds
from tests.benchmarks.demo import by_service, demo, memory_mb
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.live import driver
from tests.benchmarks.platform import platform, settings_of

NOTES = (
    "At rest: `weir demo` at its usual rates. CPU is of all processes in the span, children that ended included; a "
    "batch's is its driver's, Python and JVM. Batches are counted by their recorded positions.",
    "Without records: one driver of word_count, to whose topic nothing comes.",
)
OF = "at rest"
JOBS = ("stock_stats", "word_count", "clickstream")
QUERY = "select word, count from word_count order by count desc limit 5"
ASKED = {"weir sql": ("sql", QUERY), "weir get": ("get", "stock_stats", "MMM")}


def measure(asked: Asked) -> list[Figure]:
    warm, seconds = (60, 60) if asked.quick else (600, 300)
    asked.say(f"the demo, {warm} s after its results, for {seconds} s")
    figures = attempted(OF, partial(_of_demo, settings_of(asked.work / "demo"), warm, seconds))
    asked.say("a driver without records")
    return figures + attempted("without records", partial(_without_records, asked, warm // 2, seconds // 5))


def _of_demo(settings: Settings, warm: int, seconds: int) -> list[Figure]:
    with demo(settings, "at_rest"):
        time.sleep(warm)  # not a wait for a condition: the compilers' work is a part of the start
        groups, began = _groups(settings), datetime.now(UTC)
        before = {name: cpu(those) for name, those in groups.items()}
        time.sleep(seconds)
        cores = {name: (cpu(those) - before[name]) / seconds for name, those in groups.items()}
        batches, kept = _batches(settings, began), _promises(settings, began)
        memory = sum(memory_mb(those) for those in groups.values())
        answers = {name: _seconds(settings, arguments) for name, arguments in ASKED.items()}
    return [*_of_drivers(cores, batches, seconds), *kept, *_of_all(cores, memory), *_of_answers(answers)]


def _groups(settings: Settings) -> dict[str, list[psutil.Process]]:
    """By service, and the drivers by their job."""
    groups: dict[str, list[psutil.Process]] = defaultdict(list)
    for service, those in by_service(settings).items():
        for one in those:
            groups[next((job for job in JOBS if f"{job}@v" in _session_leader(one)), service)].append(one)
    return groups


def _session_leader(one: psutil.Process) -> str:
    """Its command: a driver leads the session of its JVM and workers."""
    try:
        line = [one, *one.parents()]
        return " ".join(" ".join(each.cmdline()) for each in line)
    except psutil.Error:
        return ""


def _batches(settings: Settings, since: datetime) -> dict[str, int]:
    with closing(ControlStore.open(settings)) as store:
        live = {job: releases.live_of(store, job) for job in JOBS}
        return {job: _since(store, release, since) for job, release in live.items() if release is not None}


def _promises(settings: Settings, since: datetime) -> list[Figure]:
    """How long batches take, of one a second."""
    figures: list[Figure] = []
    with closing(ControlStore.open(settings)) as store:
        for job in JOBS:
            release = releases.live_of(store, job)
            seen = progress.recent(store, release, since) if release else []
            took = [one.batch_seconds for one in seen]
            for share in (50, 99):
                figures.append(Figure(OF, f"{job}, a batch, p{share}", 1000 * _at(took, share), "ms"))
    return figures


def _at(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100)[share - 1]


def _since(store: ControlStore, release: ReleaseId, since: datetime) -> int:
    return sum(one.committed_at >= since for one in positions.history(store, release, 10_000))


def _seconds(settings: Settings, arguments: tuple[str, ...]) -> float:
    """The middle one of five."""
    command = [sys.executable, "-m", "platform_core.cli", *arguments]
    env = settings.child_environment() | {"PYTHONPATH": str(settings.root)}
    took: list[float] = []
    for _ in range(5):
        began = time.monotonic()
        subprocess.run(command, env=env, cwd=settings.home, check=True, capture_output=True)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def _of_drivers(cores: dict[str, float], batches: dict[str, int], seconds: int) -> list[Figure]:
    figures = [Figure(OF, "cores, the three drivers", sum(cores[job] for job in JOBS), "", at_most=0.6)]
    for job in JOBS:
        each = 1000 * cores[job] * seconds / batches[job]
        figures.append(Figure(OF, f"{job}, CPU a batch", each, "ms", at_most=110))
        figures.append(Figure(OF, f"{job}, batches a second", batches[job] / seconds, ""))
    return figures


def _of_all(cores: dict[str, float], memory: float) -> list[Figure]:
    rest = [Figure(OF, f"cores, {name}", value, "") for name, value in sorted(cores.items()) if name not in JOBS]
    return [
        Figure(OF, "cores, all of it", sum(cores.values()), "", at_most=0.9),
        *rest,
        Figure(OF, "memory, all of it", memory, "MB", at_most=4_000),
    ]


def _of_answers(answers: dict[str, float]) -> list[Figure]:
    return [Figure(OF, name, value, "s", at_most=0.7) for name, value in answers.items()]


def _without_records(asked: Asked, warm: int, seconds: int) -> list[Figure]:
    with platform(asked.work / "silent") as ours, driver(ours, "word_count") as live:
        time.sleep(warm)  # as above
        before = cpu_seconds(live.process.pid)
        time.sleep(seconds)
        share = 100 * (cpu_seconds(live.process.pid) - before) / seconds
    return [Figure("without records", "CPU of a driver", share, "% of a core", at_most=2)]
