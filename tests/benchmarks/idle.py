"""What a platform costs that does nothing, and how long it takes from a command to the first results."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from functools import partial

import psutil
from rich.console import Console

from platform_core.services import kept, process, state
from platform_core.services.down import down
from platform_core.services.service import tail
from platform_core.services.up import up
from platform_core.settings import Settings
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import started
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.platform import settings_of

NOTES = (
    "First results: what `weir demo` says, from its start to rows in all three tables with generators at their usual "
    "rate. Cold: a state folder that is not there yet; warm: that folder again. Packages, jars and Java are installed "
    "before: their download is not measured. The files are in the system's cache.",
    "Idle: broker, Postgres, supervisor, Dagster and keeper without a job. Memory is the proportional share (PSS).",
)
DEMO_SECONDS = 900.0
ROOM_MB = 8000
_TOLD = re.compile(r"Results are in every table, (\d+) s after the start")


def measure(asked: Asked) -> list[Figure]:
    settings = settings_of(asked.work / "demo")
    figures: list[Figure] = []
    for start, at_most in (("cold", None), ("warm", 60)):
        asked.say(f"a {start} start")
        figures += attempted(f"first results, {start} start", partial(_first_results, settings, start, at_most))
    asked.say("a platform without jobs")
    once = partial(_idle, settings_of(asked.work / "idle"), 10 if asked.quick else 30)
    return figures + attempted("idle platform", once)


def _first_results(settings: Settings, start: str, at_most: float | None) -> list[Figure]:
    seconds, memory = _demo(settings, start)
    return [
        Figure("first results", f"{start} start", seconds, "s", at_most=at_most),
        Figure("first results", f"memory then, {start} start", memory, "MB", at_most=ROOM_MB),
    ]


def _demo(settings: Settings, start: str) -> tuple[float, float]:
    """Seconds to the first results, and the memory of all of it once they are there."""
    command = (sys.executable, "-m", "platform_core.cli", "demo")
    env = settings.child_environment() | {"PYTHONPATH": str(settings.root)}
    log = settings.home.with_name(f"demo-{start}.log")
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        with started(command, env, log, settings.home.parent, stop_with=signal.SIGINT, seconds=240) as child:
            process.until(lambda: child.poll() is not None or _TOLD.search(log.read_text()) is not None, DEMO_SECONDS)
            told = _TOLD.search(log.read_text())
            if told is None:
                raise RuntimeError(f"The demo came to no results.{tail(log, 10)}")
            return float(told[1]), _memory_mb(kept.belonging(settings.home))
    finally:
        down(settings, Console(quiet=True))


def _idle(settings: Settings, seconds: int) -> list[Figure]:
    try:
        up(settings, Console(quiet=True))
        time.sleep(seconds)  # not a wait for a condition: what is busy with its start is not idle
        groups = _by_service(settings)
        before = {name: _cpu(those) for name, those in groups.items()}
        time.sleep(seconds)
        cores = {name: (_cpu(those) - before[name]) / seconds for name, those in groups.items()}
        memory = {name: _memory_mb(those) for name, those in groups.items()}
    finally:
        down(settings, Console(quiet=True))
        shutil.rmtree(settings.home, ignore_errors=True)
    return [
        Figure("idle platform", "memory", sum(memory.values()), "MB"),
        Figure("idle platform", "CPU", 100 * sum(cores.values()), "% of a core"),
        *(Figure("idle platform", f"memory, {name}", value, "MB") for name, value in memory.items()),
        *(Figure("idle platform", f"CPU, {name}", 100 * value, "% of a core") for name, value in cores.items()),
    ]


def _by_service(settings: Settings) -> dict[str, list[psutil.Process]]:
    """Postgres overwrites its environment: what is in its session is found by where it stands."""
    home, board = settings.home, state.read(settings.home)
    found = {"keeper": kept.belonging(home, "keeper")}
    for one in board.services:
        ours = {process.pid: process for process in kept.belonging(home, one.name)}
        if one.owner is not None:
            ours |= {process.pid: process for process in kept.in_session(one.owner.pid, home)}
        found[one.name] = list(ours.values())
    return found


def _memory_mb(those: Iterable[psutil.Process]) -> float:
    total = 0
    for one in those:
        try:
            told = one.memory_full_info()
            total += getattr(told, "pss", told.rss)
        except psutil.Error:
            continue
    return total / 1_000_000


def _cpu(those: Iterable[psutil.Process]) -> float:
    total = 0.0
    for one in those:
        try:
            times = one.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
