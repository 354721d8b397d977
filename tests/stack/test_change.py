"""A running job is changed: replayed beside the live one, followed, compared, cut over at one offset, rolled back.

All of it from Dagster's dropdowns; tests/stack/test_tutorial.py does it from the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from platform_core.control import aliases, audit, leases, positions, releases, wanted
from platform_core.control.position import same_place
from platform_core.cutover import protocol
from platform_core.names import ReleaseId
from platform_core.release import retire
from tests.conftest import Broker
from tests.stack.from_dagster import WHO, launched
from tests.stack.running import Platform, a_home, until
from tests.stack.statistics import published, read_all, trades_of

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
PREFIX = "change"
JOB = "stock_stats"
V1, V2, V3 = (ReleaseId(JOB, number) for number in (1, 2, 3))
LOAD = ["--rate", "200", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    more = {
        "WEIR_MOVES__FOLLOW_SECONDS": "3",
        "WEIR_MOVES__REPLAY_RECORDS": "20000",
        "WEIR_MOVES__READERS_SECONDS": "10",
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


def held(platform: Platform, release: ReleaseId) -> bool:
    lease = leases.current(platform.store, leases.driver_lease(release))
    return lease is not None and lease.alive


def test_a_candidate_replays_history_and_then_stands_where_the_live_one_stood(platform: Platform) -> None:
    assert launched(platform, "release", JOB, reason="as it was") == f"{V2} replays from earliest"
    until(lambda: state(platform, V2) == "following", "the replay reaches the live release")
    stands = positions.latest(platform.store, V2)
    assert stands is not None
    there = positions.history(platform.store, V1, 5000)
    assert any(same_place(one.position.offsets, stands[0].offsets) for one in there)
    before = platform.batch(V1)
    until(lambda: platform.batch(V1) > before + 3, "the live one goes on meanwhile")


def test_two_identical_releases_differ_in_nothing_that_is_not_explained(platform: Platform) -> None:
    platform.works(V2, batches=2)
    assert "do not differ" in launched(platform, "compare", JOB)


def test_the_candidate_takes_over_where_the_live_one_stands_still(platform: Platform) -> None:
    assert f"{V2} is live" in launched(platform, "cut_over", JOB, reason="a trial")
    ended = protocol.of_table(platform.store, JOB)[0]
    assert ended.phase == "swapped", ended
    assert (state(platform, V1), state(platform, V2)) == ("standby", "live")
    alias = aliases.live(platform.store, JOB)
    assert alias is not None
    assert alias.release == V2
    (move,) = ended.moves
    assert move.paused_at is not None
    assert alias.position is not None
    assert same_place(alias.position.offsets, move.paused_at.offsets)
    platform.works(V2, batches=4)


def test_the_former_live_one_follows_as_a_standby(platform: Platform) -> None:
    platform.works(V1, batches=2)
    stands = positions.latest(platform.store, V1)
    assert stands is not None
    there = positions.history(platform.store, V2, 5000)
    assert any(same_place(one.position.offsets, stands[0].offsets) for one in there)


def test_a_rollback_brings_the_standby_back(platform: Platform) -> None:
    assert f"{V1} is live" in launched(platform, "roll_back", JOB, reason="the trial is over")
    assert (state(platform, V1), state(platform, V2)) == ("live", "standby")
    platform.works(V1, batches=4)
    platform.works(V2, batches=2)  # it follows again, for the next time


def test_the_topic_says_what_the_live_table_says_through_all_of_it(platform: Platform) -> None:
    assert platform.service("generator-stocks").end() == 0
    read_all(platform, V1, f"{PREFIX}-stocks")
    rows = trades_of(platform)
    assert rows
    until(lambda: published(platform, f"{PREFIX}-stockstats-output") == rows, "the topic is the table", 60)


def test_what_is_not_needed_any_more_is_retired(platform: Platform) -> None:
    until(lambda: not retire.blockers(platform.settings, platform.store, V2), "no reader can still be reading it")
    said = launched(platform, "retire", JOB)
    assert "table" in said, said
    assert state(platform, V2) == "retired"
    assert not platform.settings.storage.archive(V2).exists()


def test_a_reset_begins_anew_and_comes_to_the_same(platform: Platform) -> None:
    before = trades_of(platform)
    said = launched(platform, "reset", JOB, start="earliest", reason="to see it")
    assert said.startswith(f"{V3} is live and begins at earliest; {V1} stopped")
    read_all(platform, V3, f"{PREFIX}-stocks")
    late_apart = {window for window, count in trades_of(platform).items() if before.get(window, 0) > count}
    assert not late_apart, "fewer trades than before, though larger batches refuse less"
    assert before.keys() <= trades_of(platform).keys()


def test_a_stream_stops_and_starts_where_it_was(platform: Platform) -> None:
    assert "stop" in launched(platform, "stop", JOB)
    until(lambda: not held(platform, V3), "its driver ends")
    batch = platform.batch(V3)
    assert "run" in launched(platform, "start", JOB)
    until(lambda: held(platform, V3), "a driver holds it")
    assert "generation" in launched(platform, "restart", JOB)
    assert platform.batch(V3) >= batch


def test_no_driver_of_a_healthy_platform_logs_an_error(platform: Platform) -> None:
    """After releases, replays, a cutover, a rollback, a reset, stops and starts."""
    logs = sorted(platform.settings.storage.logs.glob("driver-*.log"))
    assert len(logs) == 3
    wrong = re.compile(r"ERROR|Traceback|StopRequested|falling behind|\"level\":\"error\"")
    lines = [f"{log.name}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines()]
    assert [line[:300] for line in lines if wrong.search(line)] == []


def test_the_audit_names_whoever_launched_it(platform: Platform) -> None:
    mine = [line.action for line in audit.read(platform.store, JOB) if line.who.startswith(f"{WHO} in Dagster run ")]
    assert {"freeze", "compare", "cutover", "rollback", "reset", "state", "stop", "run", "restart"} <= set(mine), mine
