"""A driver that was frozen at 186ad77 and one of today take turns: live, candidate, standby, on a real broker.

The frozen one is live first; today's follows it, is compared, takes over; the frozen one follows today's as a standby,
comes back, and is revised to today's code and back to its own, on its own table and checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psutil
import pytest
from pyspark.sql import SparkSession

from platform_core.archived.protocol import PROTOCOL
from platform_core.control import aliases, leases, positions, releases, wanted
from platform_core.control.position import same_place
from platform_core.cutover import protocol, request
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from platform_core.release import archive
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.plan.changes import ChangeKind
from platform_core.release.plan.plan import plan_of
from platform_core.release.plan.tree import tree_of
from platform_core.release.plan.trial import sides
from platform_core.release.revising import go_back, revise
from platform_core.testing.oracle import Closing, Oracle
from tests.archived.frozen import PREFIX, RELEASE, made_live
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, job_in, until
from tests.stack.statistics import published, read_all, trades_of

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
JOB, V1, V2 = RELEASE.job, RELEASE, ReleaseId(RELEASE.job, 2)
LOAD = ["--rate", "100", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The frozen release is live, under load."""
    more = {"WEIR_MOVES__FOLLOW_SECONDS": "3", "WEIR_MOVES__REPLAY_RECORDS": "20000"}
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        made_live(running.settings, running.store, "a test")
        running.generate("stocks", *LOAD)
        wanted.want(running.store, V1, "run", "a test")
        running.supervise()
        running.works(V1)
        yield running


def entered_by(platform: Platform, release: ReleaseId) -> str:
    """The module that its driver, which holds its lease, runs as; nothing between two drivers."""
    held = leases.current(platform.store, leases.driver_lease(release))
    if held is None or not held.alive or not held.owner.running:
        return ""
    words = psutil.Process(held.owner.pid).cmdline()
    return words[words.index("-m") + 1]


def states(platform: Platform) -> list[str]:
    return [releases.get(platform.store, one).state for one in (V1, V2)]


def follows(platform: Platform, follower: ReleaseId, leader: ReleaseId) -> None:
    """It commits where the other has committed."""
    platform.works(follower)
    stands = positions.latest(platform.store, follower)
    assert stands is not None
    there = positions.history(platform.store, leader, 5000)
    assert any(same_place(one.position.offsets, stands[0].offsets) for one in there)


def cut_over(platform: Platform, kind: str) -> None:
    if kind == "rollback":
        asked = request.roll_back(platform.store, [JOB], "a test")
    else:
        asked = request.cut_over(platform.store, [str(V2)], "a test")
    until(lambda: not protocol.get(platform.store, asked.id).open, f"{kind} {asked.id} ends")
    ended = protocol.get(platform.store, asked.id)
    assert ended.phase == "swapped", ended
    live = aliases.live(platform.store, JOB)
    assert live is not None
    assert live.release == ended.moves[0].new


def test_the_frozen_one_runs_live_by_its_own_modules_and_is_only_a_revision_away(platform: Platform) -> None:
    assert entered_by(platform, V1) == "platform_core.stream.driver"
    assert plan_of(JOB, platform.settings, platform.store).kind is ChangeKind.REVISION


def test_both_transforms_tried_over_the_same_records_differ_in_nothing(platform: Platform) -> None:
    live = releases.get(platform.store, V1)
    with sides(platform.settings, live) as both:
        found = both.run(tree_of(platform.settings, JOB), timedelta(minutes=1))()
    assert found.comparison.rows_left == found.comparison.rows_right > 0
    assert found.comparison.same


def test_a_candidate_of_today_follows_the_frozen_one_and_has_its_rows(platform: Platform) -> None:
    release_candidate(JOB, platform.settings, platform.store, "a test", CandidateOptions(again=True))
    assert archive.verify(platform.settings, V2).protocol == PROTOCOL
    until(lambda: states(platform) == ["live", "following"], "the candidate follows")
    assert entered_by(platform, V2) == "platform_core.archived.run"
    follows(platform, V2, V1)
    outcome = compare(Caller(platform.settings, platform.store, "a test"), JOB)
    assert outcome.verdict.passed, outcome.verdict.reasons
    assert outcome.found.rows_left > 0


def test_todays_takes_over_and_the_frozen_one_follows_it_as_a_standby(platform: Platform) -> None:
    cut_over(platform, "cutover")
    until(lambda: states(platform) == ["standby", "live"], "they have changed places")
    platform.works(V2)
    follows(platform, V1, V2)


def test_the_frozen_one_comes_back_and_todays_follows_it(platform: Platform) -> None:
    cut_over(platform, "rollback")
    until(lambda: states(platform) == ["live", "standby"], "they have changed places again")
    platform.works(V1)
    assert entered_by(platform, V1) == "platform_core.stream.driver"
    follows(platform, V2, V1)


def test_the_frozen_one_is_revised_to_todays_code_and_back_where_it_stood(platform: Platform) -> None:
    revise(JOB, platform.settings, platform.store, "a test", "today's code")
    until(lambda: entered_by(platform, V1) == "platform_core.archived.run", "a driver of today's code")
    platform.works(V1)
    go_back(JOB, 0, platform.settings, platform.store, "a test", "its own code")
    until(lambda: entered_by(platform, V1) == "platform_core.stream.driver", "a driver of its own code")
    platform.works(V1)


def test_table_and_topic_hold_what_a_batch_computes_after_all_that(platform: Platform, spark: SparkSession) -> None:
    assert platform.service("generator-stocks").end() == 0
    for release in (V1, V2):
        read_all(platform, release, f"{PREFIX}-stocks")
    assert platform.service("supervisor").end() == 0
    for release in (V1, V2):
        job = job_in(platform.settings.storage.archive(release) / "code", JOB)
        assert Oracle(spark, platform.settings, job, release, Closing("window_end", "5 seconds")).table() == [], release
    assert published(platform, f"{PREFIX}-stockstats-output") == trades_of(platform)
