"""What the supervisor decides, case by case: one line a fact."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from platform_core.control.drivers import DriverState
from platform_core.control.leases import LeaseRow
from platform_core.control.owners import Owner
from platform_core.control.wanted import State, Wanted
from platform_core.names import ReleaseId
from platform_core.supervise.decide import (
    Action,
    Case,
    Ending,
    Forgive,
    GiveUp,
    KillDriver,
    Limits,
    Nothing,
    Retry,
    Seen,
    Settle,
    StartDriver,
    StopDriver,
    decide,
    pause,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIMITS = Limits(give_up_after=3, backoff=2, backoff_limit=60, silence=30, spawning=15)
RELEASE = ReleaseId("stock_stats", 1)
ME, OLD = Owner("here", 10, 1.0), Owner("here", 9, 0.5)
ELSEWHERE = Owner("there", 10, 1.0)
ALIVE, GONE = frozenset({ME}), frozenset({ME})


def wants(state: State = "run", generation: int = 1) -> Wanted:
    return Wanted(RELEASE, state, generation, "ada", "", NOW)


def driver(**changes: Any) -> DriverState:
    """One that runs."""
    running = DriverState(RELEASE, "running", ME, 1, 0, 0, None, NOW - timedelta(seconds=5), "", False, False, NOW)
    return replace(running, **changes)


def lease(owner: Owner = ME, *, alive: bool = True) -> LeaseRow:
    return LeaseRow(f"driver/{RELEASE}", 1, owner, NOW, NOW, alive)


def decided(
    wanted: Wanted | None = None, driver: DriverState | None = None, lease: LeaseRow | None = None, **seen: Any
) -> Action:
    return decide(Case(wanted, driver, lease, Seen(**seen), NOW), LIMITS)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def test_what_nobody_wants_is_left_alone() -> None:
    assert isinstance(decided(None, driver(), lease(), living=ALIVE), Nothing)


def test_what_is_wanted_and_was_never_seen_starts() -> None:
    assert decided(wants(generation=4)) == StartDriver(4, failures=0, restarts=0)


def test_what_runs_is_left_running() -> None:
    assert isinstance(decided(wants(), driver(), lease(), living=ALIVE), Nothing)


def test_a_driver_of_another_machine_is_left_running_while_its_lease_lives() -> None:
    assert isinstance(decided(wants(), driver(owner=ELSEWHERE), lease(ELSEWHERE)), Nothing)


def test_a_driver_of_another_machine_counts_as_dead_with_its_lease() -> None:
    assert isinstance(decided(wants(), driver(owner=ELSEWHERE), lease(ELSEWHERE, alive=False)), Retry)


def test_a_lease_whose_process_is_known_to_have_ended_holds_nothing() -> None:
    assert isinstance(decided(wants(), driver(), lease(alive=True), lost=GONE), Retry)


def test_a_living_process_without_a_lease_row_is_not_doubled() -> None:
    assert isinstance(decided(wants(), driver(state="starting"), None, living=ALIVE), Nothing)


def test_nothing_starts_while_a_start_is_under_way() -> None:
    assert isinstance(decided(wants(), driver(state="starting", owner=None), spawning=True), Nothing)


def test_a_start_of_a_supervisor_that_died_gets_time_to_show_itself() -> None:
    begun = driver(state="starting", owner=None, updated_at=ago(14))
    assert isinstance(decided(wants(), begun), Nothing)
    assert isinstance(decided(wants(), replace(begun, updated_at=ago(16))), Retry)


def test_a_start_that_failed_in_this_supervisor_is_not_waited_for() -> None:
    begun = driver(state="starting", owner=None, updated_at=ago(1))
    assert decided(wants(), begun, ending=Ending("could not begin: no uv")) == Retry(
        1, NOW + timedelta(seconds=2), "its process could not begin: no uv"
    )


def test_a_failure_waits_longer_each_time_and_says_why() -> None:
    first = decided(wants(), driver(), ending=Ending.exited(1))
    second = decided(wants(), driver(failures=1), ending=Ending.exited(-9))
    assert first == Retry(1, NOW + timedelta(seconds=2), "process 10 on here ended with exit code 1")
    assert second == Retry(2, NOW + timedelta(seconds=4), "process 10 on here was ended by signal 9")


def test_the_pause_has_a_limit() -> None:
    assert [pause(failures, LIMITS) for failures in (1, 2, 5, 6, 1000)] == [2, 4, 32, 60, 60]


def test_what_the_driver_said_of_its_end_is_the_reason() -> None:
    said = driver(state="failed", reason="stocks[2]@4711: 51 of 100 records rejected")
    action = decided(wants(), said, ending=Ending.exited(75))
    assert isinstance(action, Retry)
    assert action.reason == "stocks[2]@4711: 51 of 100 records rejected"


def test_what_a_driver_said_of_an_earlier_end_is_not_the_reason_of_this_one() -> None:
    action = decided(wants(), driver(reason="an earlier one"), ending=Ending.exited(-9))
    assert isinstance(action, Retry)
    assert action.reason == "process 10 on here was ended by signal 9"


def test_after_the_last_failure_it_is_given_up_with_the_reason() -> None:
    action = decided(wants(), driver(failures=2, state="failed", reason="no memory"), ending=Ending.exited(1))
    assert action == GiveUp(3, "no memory (failure 3 in a row, limit 3)", permanent=False)


def test_a_permanent_error_is_never_tried_again() -> None:
    by_word = decided(
        wants(), driver(state="failed", reason="topic made anew", permanent=True), ending=Ending.exited(1)
    )
    by_code = decided(wants(), driver(), ending=Ending.exited(66))
    assert by_word == GiveUp(1, "topic made anew", permanent=True)
    assert by_code == GiveUp(1, "process 10 on here ended with exit code 66", permanent=True)


@pytest.mark.parametrize("code", [0, 1, 75, -9, -15])
def test_other_exit_codes_are_worth_another_try(code: int) -> None:
    assert isinstance(decided(wants(), driver(), ending=Ending.exited(code)), Retry)


def test_what_was_given_up_stays_so_until_a_new_generation() -> None:
    given_up = driver(state="failed", given_up=True, failures=3)
    assert isinstance(decided(wants(), given_up), Nothing)
    assert decided(wants(generation=2), given_up) == StartDriver(2, failures=0, restarts=0)


def test_a_waiting_driver_starts_when_its_time_has_come() -> None:
    waits = driver(state="waiting", failures=2, restarts=4, next_try_at=NOW + timedelta(seconds=1))
    assert isinstance(decided(wants(), waits), Nothing)
    assert decided(wants(), replace(waits, next_try_at=NOW)) == StartDriver(1, failures=2, restarts=5)


def test_a_clock_set_back_delays_no_restart() -> None:
    waits = driver(state="waiting", failures=1, next_try_at=NOW + timedelta(hours=1))
    assert isinstance(decided(wants(), waits), StartDriver)


def test_a_driver_that_waits_for_a_service_is_tried_for_ever() -> None:
    away = driver(state="waiting", next_try_at=None, failures=2, reason="broker 127.0.0.1:19092 does not answer")
    assert decided(wants(), away, ending=Ending.exited(75)) == Retry(
        2, NOW + timedelta(seconds=4), "broker 127.0.0.1:19092 does not answer"
    )


def test_a_driver_that_stopped_by_itself_comes_back_without_a_failure_and_without_a_tight_loop() -> None:
    stopped = driver(state="stopped", updated_at=ago(1))
    assert isinstance(decided(wants(), stopped), Nothing)
    assert decided(wants(), replace(stopped, updated_at=ago(3))) == StartDriver(1, failures=0, restarts=0)


def test_failures_are_forgiven_after_a_minute_of_running() -> None:
    at = lease()
    assert isinstance(decided(wants(), driver(failures=2, running_since=ago(59)), at, living=ALIVE), Nothing)
    assert decided(wants(), driver(failures=2, running_since=ago(60)), at, living=ALIVE) == Forgive()


def test_a_restart_ends_the_old_driver_first() -> None:
    old = driver(generation=1)
    assert isinstance(decided(wants(generation=2), old, lease(), living=ALIVE), StopDriver)
    assert isinstance(decided(wants(generation=2), old, lease(), living=ALIVE, stopping_for=59.0), Nothing)
    assert isinstance(decided(wants(generation=2), old, lease(), living=ALIVE, stopping_for=61.0), KillDriver)
    assert decided(wants(generation=2), old, lease(alive=False), lost=GONE) == StartDriver(2, failures=0, restarts=0)


@pytest.mark.parametrize("state", ["stop", "pause"])
def test_a_driver_gets_a_minute_to_finish_its_batch(state: State) -> None:
    assert isinstance(decided(wants(state), driver(), lease(), living=ALIVE), StopDriver)
    assert isinstance(decided(wants(state), driver(), lease(), living=ALIVE, stopping_for=60.0), Nothing)
    assert isinstance(decided(wants(state), driver(), lease(), living=ALIVE, stopping_for=60.1), KillDriver)


@pytest.mark.parametrize("state", ["stop", "pause"])
def test_what_has_ended_and_shall_not_run_is_written_down_as_stopped(state: State) -> None:
    assert decided(wants(state), driver(), lease(alive=False), lost=GONE) == Settle()
    assert decided(wants(state), driver(state="waiting", next_try_at=NOW)) == Settle()
    assert isinstance(decided(wants(state), driver(state="stopped")), Nothing)


def test_the_reason_of_a_driver_that_was_given_up_survives_a_stop() -> None:
    assert isinstance(decided(wants("stop"), driver(state="failed", given_up=True)), Nothing)


def test_a_stop_during_a_start_waits_for_the_process() -> None:
    assert isinstance(decided(wants("stop"), driver(state="starting", owner=None), spawning=True), Nothing)


def test_a_stop_leaves_a_driver_of_another_machine_to_itself() -> None:
    assert isinstance(decided(wants("stop"), driver(owner=ELSEWHERE), lease(ELSEWHERE)), Nothing)


def test_a_driver_that_runs_on_without_a_lease_is_replaced() -> None:
    dead = lease(alive=False)
    assert isinstance(decided(wants(), driver(), dead, living=ALIVE, silent_for=30.0), Nothing)
    assert isinstance(decided(wants(), driver(), dead, living=ALIVE, silent_for=31.0), StopDriver)
    assert isinstance(decided(wants(), driver(), dead, living=ALIVE, silent_for=61.0, stopping_for=31.0), KillDriver)


def test_a_process_that_waits_for_another_ones_lease_is_not_silent() -> None:
    waiting = decided(wants(), driver(owner=OLD), lease(ELSEWHERE), living=frozenset({OLD}), silent_for=99.0)
    assert isinstance(waiting, Nothing)
