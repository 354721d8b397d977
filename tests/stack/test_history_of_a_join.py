"""A join is replayed from raw tables: of two event topics and a lookup the broker has the newer half each."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from platform_core.control import releases, wanted
from platform_core.control.position import records_between
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from platform_core.release.candidate import CandidateOptions, release_candidate
from tests.conftest import Broker
from tests.stack.landing import at_end, batches, declare_raw, ends, truncate
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(900)]
PREFIX, JOB = "landed-join", "clickstream"
LANDED = {
    "views_raw": ("PAGE_VIEWS", "clicks.pages.views"),
    "searches_raw": ("SEARCHES", "clicks.search"),
    "profiles_raw": ("USER_PROFILES", "clicks.user.profile"),
}
V1, V2 = ReleaseId(JOB, 1), ReleaseId(JOB, 2)
LOAD = ["--rate", "200", "--late", "0.02", "--late-by", "4 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def topics() -> dict[str, str]:
    """Of each raw job."""
    return {job: f"{PREFIX}-{topic}" for job, (_, topic) in LANDED.items()}


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory, topics: dict[str, str]) -> Iterator[Platform]:
    more = {"WEIR_MOVES__FOLLOW_SECONDS": "3", "WEIR_MOVES__REPLAY_RECORDS": "3000"}
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        for job, (declared, _) in LANDED.items():
            declare_raw(running.settings.root, job, declared)
        for release in running.freeze(JOB, *LANDED):
            wanted.want(running.store, release, "run", "a test")
        running.generate("clicks", *LOAD, "--records", "12000", "--start-ms", str(int(time.time() * 1000) - 120_000))
        running.supervise()
        assert running.service("generator-clicks").exit_code() == 0
        until(lambda: at_end(running, V1, topics.values()), "the live release has read all")
        for job, topic in topics.items():
            until(lambda j=job, t=topic: at_end(running, ReleaseId(j, 1), [t]), f"{job} has landed all")
        yield running


def test_all_topics_of_a_join_come_from_their_tables(
    platform: Platform, broker: Broker, topics: dict[str, str]
) -> None:
    lost = {topic: truncate(broker, platform, topic) for topic in topics.values()}
    assert all(sum(halves.values()) > 100 for halves in lost.values()), lost
    job = platform.settings.root / "streaming_jobs" / JOB / "job.py"
    job.write_text(job.read_text().replace('F.lit("")', 'F.lit("").cast("string")'))
    release_candidate(JOB, platform.settings, platform.store, "a test", CandidateOptions(again=True))
    until(lambda: bool(batches(platform, V2)), "a batch of the replay")
    platform.kill_driver(V2)
    until(lambda: releases.get(platform.store, V2).state == "following", "the replay reaches the live release")
    until(lambda: at_end(platform, V2, topics.values()), "the follower has read all")
    log = (platform.settings.storage.logs / f"driver-{V2.group}.log").read_text()
    assert log.count("history comes from raw tables") == 2, "before and after the kill"
    assert log.rindex("history comes from raw tables") < log.index("history comes from the broker")


def test_its_rows_are_those_of_the_release_that_read_the_broker(platform: Platform, topics: dict[str, str]) -> None:
    platform.generate("clicks", *LOAD, "--records", "2000")
    assert platform.service("generator-clicks").exit_code() == 0
    until(lambda: all(at_end(platform, one, topics.values()) for one in (V1, V2)), "both have read all")
    outcome = compare(Caller(platform.settings, platform.store, "a test"), JOB)
    assert outcome.verdict.passed, outcome.verdict.reasons
    views = ends(platform, [topics["views_raw"]])
    assert outcome.found.rows_left > records_between({}, views) * 0.9
