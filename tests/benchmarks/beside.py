"""What a candidate costs the live release while it replays and follows, the live one at 30 % of its capacity."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median

from ingest.generators.stocks import TICKERS
from ingest.topics import STOCKS
from platform_core.control import positions, progress, releases, wanted
from platform_core.control.facts import BatchFacts
from platform_core.declare.discover import load_job
from platform_core.names import ReleaseId
from platform_core.release.candidate import CandidateOptions as AskedRelease
from platform_core.release.candidate import release_candidate
from platform_core.release.first import first_release
from platform_core.services import process
from tests.benchmarks import preload
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import started, watched
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.live import awaited
from tests.benchmarks.platform import Platform, platform

OF, JOB = "beside a candidate", "stock_stats"
LIVE, CANDIDATE = ReleaseId(JOB, 1), ReleaseId(JOB, 2)
SHARE = 0.3
AT_MOST = 1.1
NOTES = (
    "Beside a candidate: stock_stats works off a history, which is its capacity, and then gets 30 % of that for as "
    "long as it lasts: alone; while a candidate replays the same history; while the candidate follows. Two drivers, "
    "the sender and the broker share the machine. A batch: median and mean of the span, one sample a second.",
)


def measure(asked: Asked) -> list[Figure]:
    return attempted(OF, partial(_measured, asked))


def _measured(asked: Asked) -> list[Figure]:
    history, span = (1_000_000, 15) if asked.quick else (5_000_000, 40)
    with platform(asked.work / "beside") as ours:
        preload.provide(ours.settings, (STOCKS,), _ending_now(history))
        first_release(JOB, ours.settings, ours.store, "benchmark")
        wanted.want(ours.store, LIVE, "run", "benchmark")
        env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
        log = ours.settings.storage.logs / "supervisor.log"
        with started([sys.executable, "-m", "platform_core.supervise"], env, log, ours.settings.home) as supervisor:
            asked.say(f"{history:,} records are worked off")
            declared, place = load_job(JOB, ours.settings.root), Path(ours.settings.storage.checkpoint(LIVE).uri)
            capacity = watched(ours, declared, place, supervisor, log).per_second
            return [
                Figure(OF, "records a second when it catches up", capacity, ""),
                Figure(OF, "records a second meanwhile", SHARE * capacity, ""),
                *_slowed(ours, asked, SHARE * capacity, span),
            ]


def _slowed(ours: Platform, asked: Asked, rate: float, span: int) -> Iterator[Figure]:
    """Nothing is sent from the end of the second span until the candidate follows: how long its replay takes beside
    such a load is not what is measured."""
    with _flood(ours, rate):
        asked.say("the live release alone")
        _warm_up(span)
        alone = _batches(ours, span, lambda: True)
        yield from _told("alone", alone, alone)
        release_candidate(JOB, ours.settings, ours.store, "benchmark", AskedRelease(again=True))
        asked.say("its candidate replays")
        awaited(lambda: positions.latest(ours.store, CANDIDATE) is not None, "the candidate's first step")
        yield from _told("beside a replay", _batches(ours, 2 * span, lambda: _state(ours) == "replaying"), alone)
    awaited(lambda: _state(ours) == "following", "the candidate follows")
    with _flood(ours, rate):
        asked.say("its candidate follows")
        _warm_up(span)
        yield from _told("beside a follower", _batches(ours, 2 * span, lambda: True), alone)


def _warm_up(span: int) -> None:
    time.sleep(span / 2)  # not a wait for a condition: so long it works before it is measured


def _told(when: str, found: list[BatchFacts], alone: list[BatchFacts]) -> Iterator[Figure]:
    if not found or not alone:
        yield Figure(OF, f"a live batch {when}", None, "ms", note="no batch with records in that time")
        return
    each, before = ([one.batch_seconds for one in facts] for facts in (found, alone))
    yield Figure(OF, f"a live batch {when}, median", median(each) * 1000, "ms")
    ages = [one.freshness_seconds for one in found if one.freshness_seconds is not None]
    yield Figure(OF, f"freshness of the table {when}, median", median(ages), "s")
    if found is not alone:
        yield Figure(OF, f"median batch {when} / alone", median(each) / median(before), "", at_most=AT_MOST)
        yield Figure(OF, f"mean batch {when} / alone", _mean(each) / _mean(before), "")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _ending_now(count: int) -> Iterator[preload.Record]:
    """As if its last trade were of this moment: what arrives afterwards goes on from there."""
    ahead = int(time.time() * 1000) - preload.BASE_MS - count // len(TICKERS) * preload.TICK_MS
    return ((topic, key, value, at + ahead) for topic, key, value, at in preload.stocks(count))


@contextmanager
def _flood(ours: Platform, rate: float) -> Generator[None]:
    argv = [sys.executable, "-m", "tests.benchmarks.flood", str(rate), ours.settings.kafka.servers]
    env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
    with started(argv, env, ours.settings.storage.logs / "flood.log", ours.settings.home):
        yield


def _batches(ours: Platform, span: int, while_true: Callable[[], bool]) -> list[BatchFacts]:
    """With records, over the span or as long as it is so: a short replay is soon over."""
    since = _now(ours)
    process.until(lambda: not while_true(), span)
    return [one for one in progress.recent(ours.store, LIVE, since) if one.records_in]


def _state(ours: Platform) -> str:
    return releases.get(ours.store, CANDIDATE).state


def _now(ours: Platform) -> datetime:
    with ours.store.transaction() as cursor:
        cursor.execute("select clock_timestamp() as now")
        return (cursor.fetchone() or {})["now"]
