"""How fast a history is worked off, beside bare PySpark, beside reading alone, and beside Kafka Streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest.topics import PAGE_VIEWS, SEARCHES, STOCKS, USER_PROFILES, WORDCOUNT_INPUT
from platform_core.declare import Topic
from platform_core.declare.discover import load_job
from tests.benchmarks import catching_up, peer, preload
from tests.benchmarks.asked import Asked
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.platform import Platform, platform

NOTES = (
    "Catch-up: a preloaded topic of 4 partitions, from the plan of the first batch to the commit of the last; the "
    "start of JVM and session does not count. The rivals run one after the other on one broker.",
    "Bare PySpark: the same transform, session, batch size and Delta table, by Spark's MERGE or append in "
    "foreachBatch; no rejects, rules, positions, leases, output topic, nothing exactly once. Reading and parsing: to "
    "noop, in one batch.",
    "Kafka Streams: 2 threads, exactly once, the same amount of records and state, its output topic and no table. The "
    "start of its JVM does not count either.",
)
PROFILES = 50_000


@dataclass(frozen=True)
class History:
    topics: tuple[Topic, ...]
    records: Callable[[int], Iterator[preload.Record]]
    size: int  # events; profiles come on top
    of_limit: float | None  # of reading and parsing alone
    of_peer: float


def histories(quick: bool) -> dict[str, History]:
    """Long enough that the JVM's warm-up is a small part."""
    share = 4 if quick else 1

    def clicks(views: int) -> Iterator[preload.Record]:
        return preload.clicks(views, PROFILES)

    return {
        "stock_stats": History((STOCKS,), preload.stocks, 5_000_000 // share, 0.4, 2.0),
        "word_count": History((WORDCOUNT_INPUT,), preload.lines, 1_500_000 // share, None, 2.0),
        "clickstream": History((PAGE_VIEWS, SEARCHES, USER_PROFILES), clicks, 1_000_000 // share, None, 1.5),
    }


def measure(asked: Asked) -> list[Figure]:
    figures: list[Figure] = []
    with platform(asked.work / "catch-up") as ours:
        rival = _rival(ours, asked.peer)
        for job, history in asked.of_jobs(histories(asked.quick)).items():
            asked.say(f"{job}: {history.size:,} records")
            preload.provide(ours.settings, history.topics, history.records(history.size))
            figures += attempted(f"catch-up, {job}", partial(_of_job, ours, job, history, rival))
    return figures


def _of_job(ours: Platform, job: str, history: History, rival: peer.Peer | str) -> list[Figure]:
    """The rivals run one after the other, so that each has the machine to itself."""
    declared, of = load_job(job, ours.settings.root), f"catch-up, {job}"
    weir = catching_up.weir(ours, declared)
    bare = catching_up.bare(ours, declared, "table")
    limit = catching_up.bare(ours, declared, "noop")
    each = {"weir": weir, "bare PySpark": bare, "reading and parsing": limit}
    figures = [Figure(of, name, run.per_second, "records/s") for name, run in each.items()]
    figures += [
        Figure(of, f"{name}, a CPU second", run.records / run.cpu_seconds, "records") for name, run in each.items()
    ]
    figures.append(Figure(of, "weir / bare", weir.per_second / bare.per_second, "", at_least=0.95))
    share = weir.per_second / limit.per_second
    figures.append(Figure(of, "weir / reading and parsing", share, "", at_least=history.of_limit))
    return figures + _beside_peer(of, job, history, rival, weir.per_second)


def _beside_peer(of: str, job: str, history: History, rival: peer.Peer | str, ours: float) -> list[Figure]:
    try:
        if isinstance(rival, str):
            raise peer.NoPeer(rival)
        rival.generate(job, history.size, PROFILES)
        told = rival.catch_up(job)
    except peer.NoPeer as why:
        return [Figure(of, "weir / Kafka Streams", None, "", at_least=history.of_peer, note=str(why))]
    theirs = float(told["records_per_s"])
    cpu = float(told["records"]) / (float(told["cpu_s"]) or 1)
    return [
        Figure(of, "Kafka Streams", theirs, "records/s"),
        Figure(of, "Kafka Streams, a CPU second", cpu, "records"),
        Figure(of, "weir / Kafka Streams", ours / theirs, "", at_least=history.of_peer),
    ]


def _rival(ours: Platform, place: Path) -> peer.Peer | str:
    try:
        return peer.build(ours.settings, place)
    except peer.NoPeer as why:
        return str(why)
