"""The same code released again, under load with late records, its drivers killed: every difference is explained.

Live, a job commits as records come; its candidate replays in steps by record time and follows in steps of seconds:
other triggers, other batches. stock_stats is compared so in faults/test_cutover_faults.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from platform_core.control import releases, wanted
from platform_core.names import ReleaseId
from platform_core.operations.compare import compare
from platform_core.release.candidate import Asked, release_candidate
from tests.conftest import Broker
from tests.stack.jobs import LOAD
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
PREFIX = "alike"
JOBS = ("clickstream", "word_count")
BOTH = [ReleaseId(job, number) for job in JOBS for number in (1, 2)]


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
        release_candidate(job, platform.settings, platform.store, "a test", Asked(again=True))
    for job in JOBS:
        candidate = ReleaseId(job, 2)
        until(lambda one=candidate: releases.get(platform.store, one).state == "following", f"{candidate} follows")


def test_all_four_go_on_after_a_kill(platform: Platform) -> None:
    for release in BOTH:
        platform.kill_driver(release)
    platform.works(*BOTH, batches=3)


@pytest.mark.parametrize("job", JOBS)
def test_the_two_releases_differ_in_nothing_that_is_not_explained(platform: Platform, job: str) -> None:
    outcome = compare(platform.settings, platform.store, job, "a test")
    assert outcome.verdict.passed, outcome.verdict.reasons
    assert outcome.found.rows_left > 50
