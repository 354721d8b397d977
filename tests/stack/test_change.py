"""A running job is changed: replayed beside the live one, followed, compared, cut over at one offset, rolled back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from platform_core.control import aliases, cutovers, positions, releases, wanted
from platform_core.control.cutovers import Cutover
from platform_core.control.position import same_place
from platform_core.names import ReleaseId
from platform_core.release import cutting_over
from platform_core.release.candidate import Asked, release_candidate
from platform_core.release.comparing import compare_releases
from platform_core.release.explaining import explained_by
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, until
from tests.stack.statistics import at_end, published, trades_of

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
PREFIX = "change"
JOB = "stock_stats"
V1, V2 = ReleaseId(JOB, 1), ReleaseId(JOB, 2)
LOAD = ["--rate", "200", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    more = {
        "WEIR_MOVES__FOLLOW_SECONDS": "3",
        "WEIR_MOVES__REPLAY_RECORDS": "20000",
    }
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        running.freeze(JOB)
        running.generate("stocks", *LOAD)
        wanted.want(running.store, V1, "run", "a test")
        running.supervise()
        running.works(V1, batches=5)
        yield running


def state(platform: Platform, release: ReleaseId) -> str:
    return releases.get(platform.store, release).state


def driver_log(platform: Platform, release: ReleaseId) -> str:
    return str(platform.settings.logs / f"driver-{release.group}.log")


def carried(platform: Platform, asked: Cutover) -> Cutover:
    until(lambda: not cutovers.get(platform.store, asked.id).open, f"{asked.kind} {asked.id} ends", 300)
    return cutovers.get(platform.store, asked.id)


def test_a_candidate_replays_history_and_then_stands_where_the_live_one_stood(platform: Platform) -> None:
    made = release_candidate(JOB, platform.settings, platform.store, "a test", Asked(again=True))
    assert made.id == V2
    until(lambda: state(platform, V2) == "following", "the replay reaches the live release")
    stands = positions.latest(platform.store, V2)
    assert stands is not None
    there = positions.history(platform.store, V1, 5000)
    assert any(same_place(one.position.offsets, stands[0].offsets) for one in there)
    before = platform.batch(V1)
    until(lambda: platform.batch(V1) > before + 3, "the live one goes on meanwhile")


def test_two_identical_releases_differ_in_nothing_that_is_not_explained(platform: Platform) -> None:
    platform.works(V2, batches=2)
    why = explained_by(platform.settings, platform.store)
    outcome = compare_releases(platform.settings, platform.store, JOB, by="a test", explained_by=why)
    assert outcome.verdict.passed, outcome.verdict


def test_the_candidate_takes_over_where_the_live_one_stands_still(platform: Platform) -> None:
    ended = carried(platform, cutting_over.ask(platform.store, [JOB], "a test"))
    assert ended.phase == "swapped", ended
    assert (state(platform, V1), state(platform, V2)) == ("standby", "live")
    alias = aliases.live(platform.store, JOB)
    assert alias is not None
    assert alias.release == V2
    (move,) = ended.moves
    assert move.held is not None
    assert alias.position is not None
    assert same_place(alias.position.offsets, move.held.offsets)
    platform.works(V2, batches=4)


def test_the_former_live_one_follows_as_a_standby(platform: Platform) -> None:
    platform.works(V1, batches=2)
    stands = positions.latest(platform.store, V1)
    assert stands is not None
    there = positions.history(platform.store, V2, 5000)
    assert any(same_place(one.position.offsets, stands[0].offsets) for one in there)


def test_a_rollback_brings_the_standby_back(platform: Platform) -> None:
    ended = carried(platform, cutting_over.rollback(platform.store, [JOB], "a test"))
    assert ended.phase == "swapped", ended
    assert (state(platform, V1), state(platform, V2)) == ("live", "standby")
    platform.works(V1, batches=4)
    platform.works(V2, batches=2)  # it follows again, for the next time


def test_the_topic_says_what_the_live_table_says_through_all_of_it(platform: Platform) -> None:
    platform.service("generator-stocks").ask_to_end()
    at_end(platform, V1, f"{PREFIX}-stocks")
    rows = trades_of(platform)
    assert rows
    until(lambda: published(platform, f"{PREFIX}-stockstats-output") == rows, "the topic is the table", 60)
