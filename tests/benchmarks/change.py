"""Two jobs are cut over and rolled back together, again and again, while everybody reads: what it takes, and costs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from ingest.topics import STOCKSTATS_OUTPUT, USER_ACTIVITY
from platform_core.broker import Broker
from platform_core.compare.releases import compare_releases
from platform_core.control import positions, releases, wanted
from platform_core.control.position import same_place
from platform_core.cutover import gates, protocol, request
from platform_core.cutover.model import Cutover, Move
from platform_core.declare.discover import load_job
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.read import open_tables
from platform_core.release.candidate import CandidateOptions as AskedRelease
from platform_core.release.candidate import release_candidate
from platform_core.release.first import first_release
from platform_core.services import process
from tests.benchmarks.asked import Asked
from tests.benchmarks.catching_up import started
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.live import PATIENCE, START_SECONDS, awaited, send_history, sender
from tests.benchmarks.platform import Platform, platform
from tests.benchmarks.readers import A_VIEW, CLIENTS, DELTA_READERS, STATS, VIEWS, Watchers

JOBS = ("stock_stats", "clickstream")
TABLES = {"stock_stats": STATS, "clickstream": VIEWS}
RATES = {"stock_stats": 300.0, "clickstream": 150.0}
OF = "change under load"
NOTES = (
    "Change: stock_stats and clickstream, both tables at once, forward after a comparison and back without one, while "
    f"{CLIENTS:,} asyncio clients resolve both tables, {DELTA_READERS} readers read them whole, and two read_committed "
    "consumers read the topics: on the same machine as four drivers and the senders, at a lower priority.",
    "Before that four of them without anybody who reads: the targets are for these. The flip: from all candidates "
    "aligned to the end of the transaction. Standing still: from the last commit before it to the first after, of the "
    "slower table. The rollback: from asking until readers see the old release.",
)


def measure(asked: Asked) -> list[Figure]:
    return attempted(OF, lambda: _measured(asked))


def _measured(asked: Asked) -> list[Figure]:
    times, past = (4, 300) if asked.quick else (20, 1800)
    with ExitStack() as held:
        ours = held.enter_context(platform(asked.work / "change", WEIR_MOVES__REPLAY_RECORDS="50000"))
        for job in JOBS:
            release = first_release(job, ours.settings, ours.store, "benchmark").id
            wanted.want(ours.store, release, "run", "benchmark")
        env = {**ours.settings.child_environment(), "PYTHONPATH": str(ours.settings.root)}
        supervisor = [sys.executable, "-m", "platform_core.supervise"]
        held.enter_context(started(supervisor, env, ours.settings.storage.logs / "supervisor.log", ours.settings.home))
        senders = ExitStack()
        held.enter_context(senders)
        for job in JOBS:
            send_history(ours, job, RATES[job], past)
            senders.enter_context(sender(ours, job, RATES[job]))
        awaited(lambda: all(_batch(ours, ReleaseId(job, 1)) > 10 for job in JOBS), "both live", START_SECONDS)
        for job in JOBS:
            release_candidate(job, ours.settings, ours.store, "benchmark", AskedRelease(again=True))
        asked.say("their candidates replay")
        awaited(lambda: all(_follows(ours, job) for job in JOBS), "their candidates follow")
        figures = list(_of_moves([_moved(ours, asked, number) for number in range(4)], ""))
        topics = {STATS: STOCKSTATS_OUTPUT.name, VIEWS: USER_ACTIVITY.name}
        with Watchers(ours.settings, topics) as watchers:
            moved = [_moved(ours, asked, number) for number in range(times)]
            senders.close()
            awaited(lambda: all(_read_all(ours, job) for job in JOBS), "the live releases read all")
            differing = sum(_differing(ours, watchers, job) for job in JOBS)
        figures += _of_moves(moved, ", with all readers")
        return [*figures, *_of_readers(watchers, differing)]


def _moved(ours: Platform, asked: Asked, number: int) -> tuple[Cutover, float]:
    """There on even numbers, back on odd ones; with the seconds that the slower table stood still."""
    made = request.roll_back(ours.store, JOBS, "benchmark") if number % 2 else _asked(ours)
    awaited(lambda: not protocol.get(ours.store, made.id).open, f"{made.kind} {made.id} ends")
    done = protocol.get(ours.store, made.id)
    if done.phase != "swapped":
        raise RuntimeError(f"{done.kind} {done.id} was given up: {done.why}")
    befores = {move.new: _batch(ours, move.new) for move in done.moves}
    awaited(lambda: all(_batch(ours, release) > was + 3 for release, was in befores.items()), "they go on")
    still = max(_stood_still(ours, move) for move in done.moves)
    asked.say(f"{done.kind} {number + 1}: {_between(done.requested_at, done.flipped_at):.1f} s to the flip")
    return done, still


def _asked(ours: Platform) -> Cutover:
    """Once every gate is open; the comparison is one of them."""
    deadline = time.monotonic() + PATIENCE
    moves = [Move(TABLES[job], ReleaseId(job, 1), ReleaseId(job, 2)) for job in JOBS]
    while True:
        for job in JOBS:
            compare_releases(ours.settings, ours.store, job, by="benchmark")
        try:
            return request.cut_over(ours.store, [f"{job}@v2" for job in JOBS], "benchmark")
        except UsageError as refused:
            if time.monotonic() > deadline:
                raise
            print(f"          {refused.what}", flush=True)
            process.until(lambda: not any(gates.refusals(gates.facts_of(ours.store, move)) for move in moves), 10)


def _stood_still(ours: Platform, move: Move) -> float:
    """From the old one's commit where it stood to the new one's first after that."""
    assert move.paused_at is not None
    stood = [one for one in positions.history(ours.store, move.old, 500) if one.position.batch == move.paused_at.batch]
    later = [
        one.committed_at
        for one in positions.history(ours.store, move.new, 500)
        if one.committed_at > stood[0].committed_at and not same_place(one.position.offsets, move.paused_at.offsets)
    ]
    return (min(later) - stood[0].committed_at).total_seconds()


def _of_moves(moved: Sequence[tuple[Cutover, float]], when: str) -> Iterator[Figure]:
    """The targets are for a machine that the platform has to itself."""
    forth, back = ([(one, still) for one, still in moved if one.kind == kind] for kind in ("cutover", "rollback"))
    asked_to_seen = [_between(one.requested_at, one.flipped_at) for one, _ in back]
    flips = [_between(one.aligned_at, one.flipped_at) for one, _ in moved]
    still, seen = (None, None) if when else (10.0, 5.0)
    yield Figure(OF, f"cutovers and rollbacks{when}", len(moved), "")
    yield Figure(OF, f"the flip, longest{when}", max(flips), "s", at_most=1)
    yield Figure(OF, f"tables stand still at a cutover, median{when}", median(still for _, still in forth), "s")
    yield Figure(OF, f"tables stand still at a cutover, longest{when}", max(s for _, s in forth), "s", at_most=still)
    yield Figure(OF, f"rollback, median{when}", median(asked_to_seen), "s")
    yield Figure(OF, f"rollback, longest{when}", max(asked_to_seen), "s", at_most=seen)


def _of_readers(watchers: Watchers, differing: int) -> Iterator[Figure]:
    seen = watchers.seen
    for who in ("clients", "Delta readers", "consumers"):
        yield Figure(OF, f"{who}, answers", seen.counts[f"{who}: answers"], "")
        for what in ("errors", "steps back", "duplicates", "mixed pairs"):
            kind = f"{who}: {what}"
            if kind in seen.counts or what == "errors":
                yield Figure(OF, kind, seen.counts[kind], "", at_most=0, note=seen.examples.get(kind, ""))
    yield Figure(OF, "rows of which topic and table do not agree at the end", differing, "", at_most=0)


def _differing(ours: Platform, watchers: Watchers, job: str) -> int:
    """Once nothing more arrives; a gap is a row that no consumer got."""
    watcher = watchers.topics[TABLES[job]]
    table = open_tables(ours.settings, ours.store).table(TABLES[job])
    rows: dict[object, int] = {}
    if job == "clickstream":
        rows |= Counter(_seen_at(*map(row.__getitem__, A_VIEW)) for row in table.arrow(list(A_VIEW)).to_pylist())
    else:
        found = table.arrow(["ticker", "window_start", "trade_count"]).to_pylist()
        rows |= {(row["ticker"], row["window_start"].timestamp()): row["trade_count"] for row in found}
    process.until(lambda: _alike(watcher.known) == rows, 30)
    told = _alike(watcher.known)
    return sum(told.get(key) != rows.get(key) for key in told.keys() | rows.keys())


def _alike(known: Mapping[Any, int]) -> dict[object, int]:
    """With moments as numbers, as the table's are."""
    return {_seen_at(*key) if len(key) == len(A_VIEW) else (key[0], _moment(key[1])): n for key, n in known.items()}


def _seen_at(view: str, searched_at: str | datetime | None, terms: str | None) -> tuple[object, ...]:
    return view, _moment(searched_at), terms


def _moment(at: str | datetime | None) -> float | None:
    known = datetime.fromisoformat(at) if isinstance(at, str) else at
    return None if known is None else known.timestamp()


def _read_all(ours: Platform, job: str) -> bool:
    live = next(one.id for one in releases.of_job(ours.store, job) if one.state == "live")
    declared, stands = load_job(job, Path(ours.settings.root)), positions.latest(ours.store, live)
    ends = Broker(ours.settings).ends({topic.name: range(topic.partitions) for topic in declared.topics})
    return stands is not None and all(stands[0].offsets.get(topic) == parts for topic, parts in ends.items())


def _batch(ours: Platform, release: ReleaseId) -> int:
    newest = positions.latest(ours.store, release)
    return -1 if newest is None else newest[0].batch


def _follows(ours: Platform, job: str) -> bool:
    return releases.get(ours.store, ReleaseId(job, 2)).state == "following"


def _between(earlier: datetime | None, later: datetime | None) -> float:
    assert earlier is not None
    assert later is not None
    return (later - earlier).total_seconds()
