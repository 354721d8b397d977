"""The demo as its users start it, and what its processes cost."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import psutil
from rich.console import Console

from platform_core.services import kept, process, state
from platform_core.services.down import down
from platform_core.services.service import tail
from platform_core.settings import Settings
from tests.benchmarks.catching_up import started

DEMO_SECONDS = 900.0
_TOLD = re.compile(r"Results are in every table, (\d+) s after the start")


@contextmanager
def demo(settings: Settings, name: str) -> Generator[float]:
    """With the seconds that it took from the command to rows in every table; stopped at the end."""
    command = (sys.executable, "-m", "platform_core.cli", "demo")
    env = settings.child_environment() | {"PYTHONPATH": str(settings.root)}
    log = settings.home.with_name(f"demo-{name}.log")
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        with started(command, env, log, settings.home.parent, stop_with=signal.SIGINT, seconds=240) as child:
            process.until(lambda: child.poll() is not None or _TOLD.search(log.read_text()) is not None, DEMO_SECONDS)
            told = _TOLD.search(log.read_text())
            if told is None:
                raise RuntimeError(f"The demo came to no results.{tail(log, 10)}")
            yield float(told[1])
    finally:
        down(settings, Console(quiet=True))


def by_service(settings: Settings) -> dict[str, list[psutil.Process]]:
    """Postgres overwrites its environment: what is in its session is found by where it stands."""
    home, board = settings.home, state.read(settings.home)
    found = {"keeper": kept.belonging(home, "keeper"), "generators": kept.belonging(home, "demo")}
    for one in board.services:
        ours = {process.pid: process for process in kept.belonging(home, one.name)}
        if one.owner is not None:
            ours |= {process.pid: process for process in kept.in_session(one.owner.pid, home)}
        found[one.name] = list(ours.values())
    return {name: those for name, those in found.items() if those}


def memory_mb(those: Iterable[psutil.Process]) -> float:
    """The proportional share of what they have in common."""
    total = 0
    for one in those:
        try:
            told = one.memory_full_info()
            total += getattr(told, "pss", told.rss)
        except psutil.Error:
            continue
    return total / 1_000_000
