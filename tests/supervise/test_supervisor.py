"""A real supervisor, real processes, a real Postgres: what is wanted becomes true whatever is killed or stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from platform_core.control import audit, leases, releases, services, wanted
from platform_core.control.leases import driver_lease
from platform_core.control.owners import Owner
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from tests.control.own_postgres import own_postgres
from tests.control.words import until
from tests.supervise.conftest import QUICK, Stage, stage_on

pytestmark = pytest.mark.stack
STOCKS, WORDS = ReleaseId("stock_stats", 1), ReleaseId("word_count", 1)


def gone(pid: int) -> bool:
    return not Owner.of(pid).running


def test_a_killed_driver_comes_back_and_the_reason_is_kept(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    os.kill(first, signal.SIGKILL)
    stage.runs(STOCKS, other_than=first)
    driver = stage.driver(STOCKS)
    assert (driver.failures, driver.restarts) == (1, 1)
    assert driver.reason == f"process {first} on {driver.host} was ended by signal 9"
    assert len(stage.notes(STOCKS, "started")) == 2


def test_what_a_killed_driver_left_running_is_ended(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS, "child")
    first = stage.runs(STOCKS)
    until(lambda: stage.notes(STOCKS, "child"))
    os.kill(first, signal.SIGKILL)
    until(lambda: gone(stage.notes(STOCKS, "child")[0]))
    stage.start(STOCKS)
    stage.runs(STOCKS, other_than=first)


def test_a_new_supervisor_adopts_the_drivers_of_a_killed_one(stage: Stage) -> None:
    killed = stage.supervisor()
    stage.start(STOCKS)
    stage.start(WORDS)
    before = stage.runs(STOCKS), stage.runs(WORDS)
    killed.kill()
    killed.wait()
    second = stage.supervisor()
    until(lambda: stage.leads(second), 60)
    assert (stage.runs(STOCKS), stage.runs(WORDS)) == before
    assert [stage.notes(release, "started") for release in (STOCKS, WORDS)] == [[pid] for pid in before]
    os.kill(before[0], signal.SIGKILL)  # an adopted one is looked after like an own one
    stage.runs(STOCKS, other_than=before[0])


def test_drivers_that_died_with_their_supervisor_run_again(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    supervisor.kill()
    os.kill(first, signal.SIGKILL)
    supervisor.wait()
    stage.supervisor()
    stage.runs(STOCKS, other_than=first)


def test_a_driver_that_fails_again_and_again_is_given_up_until_someone_asks(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS, "exit 3")
    driver = stage.is_in(STOCKS, "failed")
    assert (driver.failures, driver.given_up, driver.permanent) == (3, True, False)
    assert driver.reason.endswith("ended with exit code 3 (failure 3 in a row, limit 3)")
    assert len(stage.notes(STOCKS, "started")) == 3
    stage.start(STOCKS)
    stage.runs(STOCKS)
    assert stage.driver(STOCKS).failures == 0


def test_a_candidate_that_is_given_up_has_failed_with_the_reason_until_someone_asks(stage: Stage) -> None:
    nothing: dict[str, Any] = {"archive_sha256": "", "fingerprint": "", "manifest": {}, "topics": {}, "by": "ada"}
    live, candidate, another = (ReleaseId(STOCKS.job, number) for number in (7, 8, 9))
    releases.create(stage.store, live, state="live", **nothing)
    releases.create(stage.store, candidate, state="following", **nothing)
    stage.supervisor()
    stage.start(live, "exit 3")
    stage.start(candidate, "exit 3")
    until(lambda: releases.get(stage.store, candidate).state == "failed")
    assert releases.get(stage.store, candidate).reason.endswith("ended with exit code 3 (failure 3 in a row, limit 3)")
    stage.is_in(live, "failed")
    assert releases.get(stage.store, live).state == "live"
    stage.start(candidate)
    assert releases.get(stage.store, candidate).state == "replaying"
    stage.runs(candidate)
    releases.set_state(stage.store, candidate, "failed", "a test")
    releases.create(stage.store, another, state="replaying", **nothing)
    with pytest.raises(UsageError, match="is a candidate already"):
        stage.start(candidate)


def test_a_permanent_failure_is_not_tried_again(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS, "permanent")
    stage.start(WORDS)
    driver = stage.is_in(STOCKS, "failed")
    until(lambda: stage.driver(STOCKS).given_up)
    assert driver.reason == "topic 'stocks' was made anew"
    stage.runs(WORDS)
    assert len(stage.notes(STOCKS, "started")) == 1


def test_an_archive_that_was_changed_is_not_begun_and_says_why(stage: Stage) -> None:
    stage.supervisor()
    stage.start(broken := ReleaseId("broken", 1))
    driver = stage.is_in(broken, "failed")
    assert driver.permanent
    assert driver.reason == "its process could not begin: broken@v1: job.py is not what was frozen. Restore it."


def test_a_driver_whose_service_is_away_is_never_given_up(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS, "away")
    until(lambda: len(stage.notes(STOCKS, "started")) > 4, 90)
    assert not stage.driver(STOCKS).given_up
    assert stage.driver(STOCKS).reason == "the broker does not answer"
    stage.start(STOCKS)
    stage.runs(STOCKS)


def test_a_restart_ends_one_driver_after_its_batch_and_begins_another(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    wanted.restart(stage.store, STOCKS, "ada", "new password")
    second = stage.runs(STOCKS, other_than=first)
    assert stage.notes(STOCKS, "ended") == [first]
    assert stage.notes(STOCKS, "started") == [first, second]
    assert [line.action for line in audit.read(stage.store, "stock_stats")] == ["restart", "run"]


def test_a_stop_and_a_pause_end_the_driver_and_a_start_brings_it_back(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    wanted.want(stage.store, STOCKS, "pause", "ada")
    stage.is_in(STOCKS, "stopped")
    until(lambda: gone(first))
    assert stage.notes(STOCKS, "ended") == [first]
    stage.start(STOCKS)
    stage.runs(STOCKS, other_than=first)


def test_a_driver_that_does_not_stop_is_killed(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS, "stubborn")
    first = stage.runs(STOCKS)
    wanted.want(stage.store, STOCKS, "stop", "ada")
    until(lambda: gone(first), 60)
    stage.is_in(STOCKS, "stopped")
    assert stage.notes(STOCKS, "ended") == []


def test_a_supervisor_asked_to_end_stops_its_drivers_first_and_they_are_still_wanted(stage: Stage) -> None:
    supervisor = stage.supervisor()
    stage.start(STOCKS)
    stage.start(WORDS)
    pids = stage.runs(STOCKS), stage.runs(WORDS)
    supervisor.terminate()
    assert supervisor.wait(60) == 0
    assert all(gone(pid) for pid in pids)
    assert (stage.notes(STOCKS, "ended"), stage.notes(WORDS, "ended")) == ([pids[0]], [pids[1]])
    assert {one.state for one in wanted.all(stage.store).values()} == {"run"}
    stage.supervisor()
    stage.runs(STOCKS)
    assert stage.driver(STOCKS).failures == 0


def test_of_two_supervisors_one_works_and_the_other_takes_over(stage: Stage) -> None:
    stage.start(STOCKS)
    two = [stage.supervisor(), stage.supervisor()]
    first = stage.runs(STOCKS)
    until(lambda: any(stage.leads(one) for one in two))
    leader, other = two if stage.leads(two[0]) else two[::-1]
    leader.kill()
    leader.wait()
    until(lambda: stage.leads(other), 60)
    os.kill(first, signal.SIGKILL)
    second = stage.runs(STOCKS, other_than=first)
    assert stage.notes(STOCKS, "started") == [first, second]


def test_a_supervisor_stopped_beyond_its_lease_wakes_up_and_does_nothing(stage: Stage) -> None:
    stage.start(STOCKS)
    sleepy = stage.supervisor()
    first = stage.runs(STOCKS)
    until(lambda: stage.leads(sleepy))
    sleepy.send_signal(signal.SIGSTOP)
    second = stage.supervisor()
    until(lambda: stage.leads(second), 60)
    os.kill(first, signal.SIGKILL)  # the sleeper's own child: it too will learn of this
    sleepy.send_signal(signal.SIGCONT)
    later = stage.runs(STOCKS, other_than=first)
    log = stage.settings.storage.logs / "supervisor.log"
    until(lambda: '"error":"Superseded"' in log.read_text())
    assert stage.leads(second)
    assert stage.notes(STOCKS, "started") == [first, later]


def test_a_driver_stopped_beyond_its_lease_is_replaced(stage: Stage) -> None:
    stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    os.kill(first, signal.SIGSTOP)
    stage.runs(STOCKS, other_than=first)
    assert gone(first)
    row = leases.current(stage.store, driver_lease(STOCKS))
    assert row is not None
    assert row.epoch == 2


def test_it_shows_that_it_supervises_and_what(stage: Stage) -> None:
    process = stage.supervisor()
    stage.start(STOCKS)
    stage.runs(STOCKS)
    until(lambda: services.all(stage.store)["supervisor"].detail["running"] == [str(STOCKS)])
    assert services.all(stage.store)["supervisor"].age_seconds < 10
    process.kill()
    process.wait()
    until(lambda: services.all(stage.store)["supervisor"].age_seconds > 5)


def test_postgres_away_for_longer_than_a_lease_ends_nothing(tmp_path: Path) -> None:
    with own_postgres(tmp_path, **QUICK) as server:
        stage = stage_on(server.settings)
        try:
            outlive_an_outage(stage, server.stop, server.start)
        finally:
            stage.clear()


def outlive_an_outage(stage: Stage, stop: Callable[[], None], start: Callable[[], None]) -> None:
    supervisor = stage.supervisor()
    stage.start(STOCKS)
    first = stage.runs(STOCKS)
    lease = leases.current(stage.store, driver_lease(STOCKS))
    stop()
    until(lambda: b'"error":"ServiceUnavailable"' in (stage.settings.storage.logs / "supervisor.log").read_bytes())
    ends = leases.elapsed() + 2 * stage.settings.supervision.lease_seconds
    until(lambda: leases.elapsed() > ends)
    start()
    until(lambda: (row := leases.current(stage.store, driver_lease(STOCKS))) is not None and row.alive)
    assert lease is not None
    assert supervisor.poll() is None
    os.kill(first, signal.SIGKILL)  # and it works again
    stage.runs(STOCKS, other_than=first)
    assert stage.notes(STOCKS, "started")[0] == first
    assert len(stage.notes(STOCKS, "started")) == 2
