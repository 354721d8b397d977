"""How old a record is when its effect can be read, while 10,000 a second arrive."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.topics import STOCKS, STOCKSTATS_OUTPUT
from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_job
from platform_core.names import ReleaseId
from platform_core.release.archive import command_for
from platform_core.release.freeze import freeze
from platform_core.services import process
from tests.benchmarks import arrivals, catching_up
from tests.benchmarks.catching_up import cpu_seconds, started
from tests.benchmarks.figures import Figure
from tests.benchmarks.platform import Platform, platform

RATE = 10_000  # records a second in all
TABLE_MS, TOPIC_MS = 800, 400
GENERATOR = {"stock_stats": "stocks", "word_count": "lines", "clickstream": "clicks"}


@dataclass(frozen=True)
class Span:
    """Seconds before the measuring, while the JVM warms up, and seconds of it."""

    warm: int
    measured: int


@dataclass(frozen=True)
class Live:
    job: StreamingJob
    release: ReleaseId
    process: subprocess.Popen[bytes]


def measure(work: Path, *, quick: bool) -> list[Figure]:
    span = Span(25, 20) if quick else Span(45, 45)
    return [
        *_measured(work / "alone", ["stock_stats"], span, "freshness, stock_stats alone"),
        *_measured(work / "together", list(GENERATOR), span, "freshness, three jobs at once"),
    ]


def _measured(home: Path, names: Sequence[str], span: Span, of: str) -> list[Figure]:
    with ExitStack() as held:
        ours = held.enter_context(platform(home))
        lives = [held.enter_context(_live(ours, name)) for name in names]
        reader = held.enter_context(arrivals.StatsReader(ours.settings, STOCKSTATS_OUTPUT))
        senders = [held.enter_context(_sender(ours, name, RATE // len(names))) for name in names]
        time.sleep(span.warm)  # not a wait for a condition: the length of the warm-up
        since_ms, before = int(time.time() * 1000), {live.release: cpu_seconds(live.process.pid) for live in lives}
        time.sleep(span.measured)
        used = {live.release: cpu_seconds(live.process.pid) - before[live.release] for live in lives}
        for sender in senders:
            process.until(lambda sender=sender: _ended(sender), 10)
        process.until(lambda: all(_caught_up(ours, live) for live in lives), 30)
        figures = [one for live in lives for one in _of_table(ours, of, live, since_ms)]
        figures += _of_topic(ours, of, reader, since_ms)
        alive = [live.process.poll() is None for live in lives]
    cores = sum(used.values()) / span.measured
    note = "" if all(alive) else "a driver had ended"
    return [*figures, Figure(of, "cores that the drivers used", cores, "", note=note)]


def _ended(sender: subprocess.Popen[bytes]) -> bool:
    sender.send_signal(signal.SIGTERM)
    return sender.poll() is not None


def _caught_up(ours: Platform, live: Live) -> bool:
    return catching_up.reached(ours, live.job, Path(ours.settings.checkpoint(live.release)))


def _of_table(ours: Platform, of: str, live: Live, since_ms: int) -> list[Figure]:
    lags: list[float] = []
    table = Path(ours.settings.table_uri(live.release))
    for part in live.job.streams.values():
        lags += arrivals.to_table(table, arrivals.records(ours.settings, part.topic), since_ms)
    target = TABLE_MS if of.endswith("alone") else None
    return _quantiles(of, f"{live.job.name} in the table", lags, target)


def _of_topic(ours: Platform, of: str, reader: arrivals.StatsReader, since_ms: int) -> list[Figure]:
    lags, missing = reader.lags(arrivals.records(ours.settings, STOCKS), since_ms)
    target = TOPIC_MS if of.endswith("alone") else None
    figures = _quantiles(of, "stock_stats in the topic", lags, target)
    return [*figures, Figure(of, "asks without a result", missing, "", at_most=0)]


def _quantiles(of: str, name: str, lags: list[float], p99_at_most: float | None) -> list[Figure]:
    lags.sort()
    if not lags:
        return [Figure(of, f"{name}, p99", None, "ms", at_most=p99_at_most, note="nothing arrived")]
    middle, most = lags[len(lags) // 2], lags[int(len(lags) * 0.99)]
    return [
        Figure(of, f"{name}, p50", middle, "ms"),
        Figure(of, f"{name}, p99", most, "ms", at_most=p99_at_most),
        Figure(of, f"{name}, records", len(lags), ""),
    ]


@contextmanager
def _live(ours: Platform, name: str) -> Generator[Live]:
    settings, job = ours.settings, load_job(name, ours.settings.root)
    release = freeze(name, settings, ours.store, "benchmark").id
    argv, env = command_for(settings, release)
    with started(argv, env, settings.logs / f"driver-{release}.log", settings.home) as child:
        yield Live(job, release, child)


@contextmanager
def _sender(ours: Platform, name: str, rate: int) -> Generator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "ingest.generators", GENERATOR[name], "--rate", str(rate)]
    env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
    with started(argv, env, ours.settings.logs / f"sender-{name}.log", ours.settings.home) as child:
        yield child
