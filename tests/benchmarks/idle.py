"""What a platform costs that does nothing, and how long it takes from a command to the first results."""

from __future__ import annotations

import shutil
import time
from functools import partial

from rich.console import Console

from platform_core.services import kept
from platform_core.services.down import down
from platform_core.services.up import up
from platform_core.settings import Settings
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import cpu
from tests.benchmarks.demo import by_service, demo, memory_mb
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.platform import settings_of

NOTES = (
    "First results: what `weir demo` says, from its start to rows in all three tables with generators at their usual "
    "rate. Cold: a state folder that is not there yet; warm: that folder again. Packages, jars and Java are installed "
    "before: their download is not measured. The files are in the system's cache.",
    "Idle: broker, Postgres, supervisor, Dagster and keeper without a job. Memory is the proportional share (PSS).",
)
ROOM_MB = 8000


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
    with demo(settings, start) as seconds:
        return seconds, memory_mb(kept.belonging(settings.home))


def _idle(settings: Settings, seconds: int) -> list[Figure]:
    try:
        up(settings, Console(quiet=True))
        time.sleep(seconds)  # not a wait for a condition: what is busy with its start is not idle
        groups = by_service(settings)
        before = {name: cpu(those) for name, those in groups.items()}
        time.sleep(seconds)
        cores = {name: (cpu(those) - before[name]) / seconds for name, those in groups.items()}
        memory = {name: memory_mb(those) for name, those in groups.items()}
    finally:
        down(settings, Console(quiet=True))
        shutil.rmtree(settings.home, ignore_errors=True)
    return [
        Figure("idle platform", "memory", sum(memory.values()), "MB"),
        Figure("idle platform", "CPU", 100 * sum(cores.values()), "% of a core"),
        *(Figure("idle platform", f"memory, {name}", value, "MB") for name, value in memory.items()),
        *(Figure("idle platform", f"CPU, {name}", 100 * value, "% of a core") for name, value in cores.items()),
    ]
