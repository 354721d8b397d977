"""How old a record is when its effect can be read, while 10,000 a second arrive."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest.topics import STOCKS, STOCKSTATS_OUTPUT
from platform_core.services import process
from tests.benchmarks import arrivals, catching_up
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import cpu_seconds
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.live import GENERATOR, Live, await_first_batch, driver, sender
from tests.benchmarks.platform import Platform, platform
from tests.benchmarks.promising import promising

NOTES = (
    "Freshness: from each record's timestamp, set when the generator sends it, to the commit that covers it (the time "
    "of the commit's file) and to the first result that counts it (a read_committed consumer in another process). "
    "The jobs promise half a second.",
    "Three jobs at once: a third of the records each. Generators, broker, drivers and reader share the machine.",
)
PROMISED = "500 milliseconds"  # of each job, instead of its usual second: it is freshness that is measured
RATE = 10_000  # records a second in all
TABLE_MS, TOPIC_MS = 800, 400
DRAIN_SECONDS = 90.0  # at rest after the senders: on a machine that cannot keep up, old records are still to come


@dataclass(frozen=True)
class Span:
    """Seconds before the measuring, while the JVM warms up, and seconds of it."""

    warm: int
    measured: int


def measure(asked: Asked) -> list[Figure]:
    span = Span(25, 20) if asked.quick else Span(45, 45)
    figures: list[Figure] = []
    for of, names in (("stock_stats alone", ["stock_stats"]), ("three jobs at once", list(GENERATOR))):
        asked.say(of)
        once = partial(_measured, asked.work / f"of-{len(names)}", names, span, f"freshness, {of}")
        figures += attempted(f"freshness, {of}", once)
    return figures


def _measured(home: Path, names: Sequence[str], span: Span, of: str) -> list[Figure]:
    with ExitStack() as held:
        ours = promising(held.enter_context(platform(home)), PROMISED, names)
        lives = [held.enter_context(driver(ours, name)) for name in names]
        reader = held.enter_context(arrivals.StatsReader(ours.settings, STOCKSTATS_OUTPUT))
        senders = [held.enter_context(sender(ours, name, RATE / len(names))) for name in names]
        await_first_batch(ours, lives)
        time.sleep(span.warm)  # not a wait for a condition: the length of the warm-up
        since_ms, before = int(time.time() * 1000), {live.release: cpu_seconds(live.process.pid) for live in lives}
        time.sleep(span.measured)
        used = {live.release: cpu_seconds(live.process.pid) - before[live.release] for live in lives}
        for one in senders:
            process.until(lambda one=one: _ended(one), 10)
        process.until(lambda: all(_caught_up(ours, live) for live in lives), DRAIN_SECONDS)
        figures = [one for live in lives for one in _of_table(ours, of, live, since_ms)]
        figures += _of_topic(ours, of, reader, since_ms)
        alive = [live.process.poll() is None for live in lives]
    cores = sum(used.values()) / span.measured
    note = "" if all(alive) else "a driver had ended"
    return [*figures, Figure(of, "cores that the drivers used", cores, "", note=note)]


def _ended(child: subprocess.Popen[bytes]) -> bool:
    child.send_signal(signal.SIGTERM)
    return child.poll() is not None


def _caught_up(ours: Platform, live: Live) -> bool:
    return catching_up.reached(ours, live.job, Path(ours.settings.storage.checkpoint(live.release).uri))


def _of_table(ours: Platform, of: str, live: Live, since_ms: int) -> list[Figure]:
    lags: list[float] = []
    missing = 0
    table = Path(ours.settings.storage.table(live.release).uri)
    for part in live.job.streams.values():
        more, lost = arrivals.to_table(table, arrivals.records(ours.settings, part.topic), since_ms)
        lags += more
        missing += lost
    target = TABLE_MS if of.endswith("alone") else None
    figures = _quantiles(of, f"{live.job.name} in the table", lags, target)
    return [*figures, Figure(of, f"{live.job.name}, records in no commit", missing, "", at_most=0)]


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
