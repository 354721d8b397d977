"""Two jobs, the same code released again, under load with late records, drivers killed: each difference is explained;
then both tables change in one step: nobody reads one moved and the other not, and of two commands one wins.

Live, a job commits as records come; its candidate replays in steps by record time and follows in steps of seconds:
other triggers, other batches. stock_stats is compared so in faults/test_cutover_faults.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

import pytest

from platform_core.control import aliases, releases, wanted
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.gates import facts_of, refusals
from platform_core.cutover.model import Move
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from tests.conftest import Broker
from tests.stack.from_dagster import launched
from tests.stack.jobs import LOAD
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
PREFIX = "alike"
JOBS = CLICKS, WORDS = "clickstream", "word_count"
TABLES = ("user_activity", WORDS)
OLD, NEW = (tuple(ReleaseId(job, number) for job in JOBS) for number in (1, 2))
BOTH = [*OLD, *NEW]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    more = {
        "WEIR_MOVES__FOLLOW_SECONDS": "3",
        "WEIR_MOVES__REPLAY_RECORDS": "2000",
        "WEIR_SUPERVISION__LEASE_SECONDS": "6",
    }
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        lives = running.freeze(*JOBS)
        for live in lives:
            wanted.want(running.store, live, "run", "a test")
        for kind in ("clicks", "lines"):
            running.generate(kind, *LOAD[kind])
        running.supervise()
        running.works(*lives, batches=5)
        yield running


def test_candidates_replay_and_follow(platform: Platform) -> None:
    for job in JOBS:
        launched(platform, "release", job, reason="as it was")
    for candidate in NEW:
        until(lambda one=candidate: releases.get(platform.store, one).state == "following", f"{candidate} follows")


def test_all_four_go_on_after_a_kill(platform: Platform) -> None:
    for release in BOTH:
        platform.kill_driver(release)
    platform.works(*BOTH, batches=3)


@pytest.mark.parametrize("job", JOBS)
def test_the_two_releases_differ_in_nothing_that_is_not_explained(platform: Platform, job: str) -> None:
    outcome = compare(Caller(platform.settings, platform.store, "a test"), job)
    assert outcome.verdict.passed, outcome.verdict.reasons
    assert outcome.found.rows_left > 50


def command(platform: Platform, *words: str) -> subprocess.Popen[str]:
    root = platform.settings.root
    return subprocess.Popen(
        [sys.executable, "-m", "platform_core.cli", *words],
        cwd=root,
        env={**platform.settings.child_environment(), "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def compared(platform: Platform) -> None:
    """Each has committed a moment ago, and every gate is open."""
    platform.works(*OLD, *NEW)
    for job in JOBS:
        launched(platform, "compare", job)
    moves = [Move(*one) for one in zip(TABLES, OLD, NEW, strict=True) if not is_live(platform, one[2])]
    until(lambda: not [why for move in moves for why in refusals(facts_of(platform.store, move))], "every gate is open")


def is_live(platform: Platform, release: ReleaseId) -> bool:
    return releases.get(platform.store, release).state == "live"


def pair(store: ControlStore) -> tuple[ReleaseId, ...]:
    found = aliases.resolve(store, TABLES)
    return tuple(found[table].release for table in TABLES)


@contextmanager
def watched(platform: Platform) -> Generator[list[tuple[ReleaseId, ...]]]:
    """Every pair that a client got while the block ran, each once after the other."""
    seen: list[tuple[ReleaseId, ...]] = []
    over = threading.Event()

    def poll() -> None:
        with closing(ControlStore.open(platform.settings)) as store:
            while not over.wait(0.005):
                if (now := pair(store)) not in seen[-1:]:
                    seen.append(now)

    client = threading.Thread(target=poll)
    client.start()
    try:
        until(lambda: seen, "the client gets an answer")
        yield seen
    finally:
        over.set()
        client.join()


def test_of_two_commands_at_once_one_wins_and_the_other_says_who_did(platform: Platform) -> None:
    compared(platform)
    supervisor = platform.service("supervisor").child.pid
    os.kill(supervisor, signal.SIGSTOP)  # nothing is carried through before both have asked
    try:
        racing = {jobs: command(platform, "cutover", *jobs) for jobs in (JOBS, (WORDS,))}
        until(lambda: any(one.poll() is not None for one in racing.values()), "one of them is refused", 25)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    said = {jobs: (one.communicate(timeout=300)[0], one.returncode) for jobs, one in racing.items()}
    ((winner, _),) = [(jobs, words) for jobs, (words, code) in said.items() if code == 0]
    ((loser, why),) = [(jobs, words) for jobs, (words, code) in said.items() if code != 0]
    assert "asked for cutover" in why, said
    if CLICKS in loser:  # the other one moved alone
        compared(platform)
        assert command(platform, "cutover", CLICKS).wait(300) == 0
    assert pair(platform.store) == NEW
    (first, *_) = reversed(protocol.of_table(platform.store, WORDS))
    assert first.phase == "swapped"
    assert set(first.tables) == {table for job, table in zip(JOBS, TABLES, strict=True) if job in winner}
    platform.works(*NEW)


def test_two_tables_go_back_in_one_step_from_the_page(platform: Platform) -> None:
    platform.works(*OLD)
    with watched(platform) as pairs:
        said = launched(platform, "roll_back", CLICKS, also=[WORDS], reason="together")
    assert all(f"{release} is live" in said for release in OLD), said
    assert pairs == [NEW, OLD]
    platform.works(*OLD)


def test_and_forward_again(platform: Platform) -> None:
    platform.works(*NEW)
    with watched(platform) as pairs:
        ran = command(platform, "cutover", *(str(release) for release in NEW))
        said, _ = ran.communicate(timeout=300)
    assert ran.returncode == 0, said
    assert pairs == [OLD, NEW]
