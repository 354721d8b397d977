"""What is raised, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_core.declare import Topic as Declared
from platform_core.orchestrate import health
from platform_core.orchestrate.health import HealthResult
from platform_core.orchestrate.observed_state import ObservedDriver, ObservedSupervisor, behind
from tests.orchestrate.sightings import (
    ALIVE,
    DEAD,
    SILENT_BROKER,
    SUPERVISED,
    batch,
    broker,
    running,
    topic,
)

OLD = replace(ALIVE, age=3600.0)
STOCKS = Declared(name="stocks", value="price BIGINT", partitions=1)


def seen(verdict: HealthResult) -> str:
    return "passed" if verdict.passed else "error" if verdict.grave else "warning"


def test_a_driver_that_works_is_alive() -> None:
    assert seen(health.driver_alive(running(batch()), behind=10)) == "passed"


def test_a_dead_driver_is_an_error_that_says_what_it_last_said() -> None:
    verdict = health.driver_alive(running(batch(age=40), driver=replace(DEAD, reason="Killed.")), behind=10)
    assert seen(verdict) == "error"
    assert "no driver holds its lease" in verdict.says
    assert "Killed." in verdict.says


def test_a_stopped_stream_needs_no_driver() -> None:
    assert seen(health.driver_alive(running(driver=DEAD, wanted="stop"), behind=10)) == "passed"
    assert seen(health.driver_alive(running(driver=None, wanted="pause"), behind=10)) == "passed"


def test_a_driver_has_a_minute_to_begin_and_no_more() -> None:
    assert seen(health.driver_alive(running(driver=None, wanted_age=30), behind=10)) == "passed"
    assert seen(health.driver_alive(running(driver=None, wanted_age=90), behind=10)) == "error"


def test_a_driver_that_was_given_up_says_why_and_what_to_do() -> None:
    driver = ObservedDriver(
        "failed", lease_alive=False, failures=5, given_up=True, reason="51 of 100 records rejected."
    )
    verdict = health.driver_alive(running(driver=driver), behind=10)
    assert seen(verdict) == "error"
    assert "stays stopped" in verdict.says
    assert "51 of 100 records rejected." in verdict.says


def test_a_driver_that_keeps_failing_is_a_warning_while_it_is_tried_again() -> None:
    driver = replace(ALIVE, failures=2, reason="Kafka was away.")
    assert seen(health.driver_alive(running(batch(), driver=driver), behind=10)) == "warning"


def test_a_driver_that_waits_for_something_is_a_warning() -> None:
    driver = replace(ALIVE, state="waiting", reason="the control store is away")
    assert seen(health.driver_alive(running(driver=driver), behind=0)) == "warning"


def test_a_driver_without_batches_is_stuck_when_records_wait() -> None:
    assert seen(health.driver_alive(running(batch(age=150), driver=OLD), behind=10)) == "error"


def test_a_driver_whose_batches_take_long_is_given_the_time_of_some() -> None:
    assert seen(health.driver_alive(running(batch(age=140, batch_seconds=30), driver=OLD), behind=10)) == "passed"
    assert seen(health.driver_alive(running(batch(age=160, batch_seconds=30), driver=OLD), behind=10)) == "error"


def test_a_driver_that_has_just_begun_is_not_stuck_for_its_predecessors_silence() -> None:
    assert seen(health.driver_alive(running(batch(age=150), driver=replace(ALIVE, age=20)), behind=10)) == "passed"


def test_a_driver_without_batches_is_idle_when_none_wait() -> None:
    assert seen(health.driver_alive(running(batch(age=150), driver=OLD), behind=0)) == "passed"
    assert seen(health.driver_alive(running(batch(age=150), driver=OLD), behind=None)) == "passed"


def test_a_driver_that_ran_no_batch_since_it_began_is_stuck_too() -> None:
    assert seen(health.driver_alive(running(driver=replace(ALIVE, age=150)), behind=10)) == "error"
    assert seen(health.driver_alive(running(driver=replace(ALIVE, age=20)), behind=10)) == "passed"


def test_a_dead_broker_is_an_error() -> None:
    verdict = health.lag_bounded(running(batch()), None, SILENT_BROKER)
    assert seen(verdict) == "error"
    assert "broker does not answer" in verdict.says


@pytest.mark.parametrize(
    ("lag_before", "lag_now", "outcome"),
    [(0, 9_000, "passed"), (50_000, 40_000, "passed"), (50_000, 55_000, "passed"), (50_000, 70_000, "warning")],
)
def test_lag_may_be_high_and_may_not_grow(lag_before: int, lag_now: int, outcome: str) -> None:
    release = running(batch(1, age=290, lag=lag_before), batch(2))
    assert seen(health.lag_bounded(release, lag_now, broker())) == outcome


def test_lag_of_a_dead_driver_grows() -> None:
    release = running(batch(1, age=290, lag=5), driver=DEAD)
    assert seen(health.lag_bounded(release, behind(release, ("stocks",), broker(end=50_000)), broker())) == "warning"


def test_lag_of_a_stopped_stream_is_what_was_asked_for() -> None:
    assert seen(health.lag_bounded(running(wanted="stop"), 1_000_000, broker())) == "passed"


def test_behind_counts_from_the_oldest_record_that_retention_has_left() -> None:
    left = replace(broker(), topics={"stocks": topic(end=9000, begin=8000)})
    assert behind(running(at=100), ("stocks",), left) == 1000


def test_behind_is_unknown_when_the_broker_is_silent() -> None:
    assert behind(running(), ("stocks",), SILENT_BROKER) is None


@pytest.mark.parametrize(("rejected", "outcome"), [(0, "passed"), (50, "passed"), (51, "warning"), (500, "error")])
def test_rejects_warn_at_a_tenth_of_the_limit(rejected: int, outcome: str) -> None:
    release = running(batch(used=1000 - rejected, rejected=rejected))
    assert seen(health.rejects_bounded(release, limit=0.5)) == outcome


def test_a_record_that_nobody_accounts_for_is_an_error() -> None:
    verdict = health.accounted(running(batch(1), batch(7, used=990, late=5, rejected=3, filtered=1)))
    assert seen(verdict) == "error"
    assert "batch 7" in verdict.says
    assert "1 missing" in verdict.says


def test_used_rejected_late_and_filtered_make_up_what_was_delivered() -> None:
    assert seen(health.accounted(running(batch(used=980, late=10, rejected=7, filtered=3)))) == "passed"


@pytest.mark.parametrize(("silent_for", "outcome"), [(2.0, "passed"), (31.0, "error"), (None, "error")])
def test_a_supervisor_that_is_silent_for_half_a_minute_is_an_error(silent_for: float | None, outcome: str) -> None:
    assert seen(health.supervised(ObservedSupervisor(silent_for))) == outcome


def test_without_a_control_store_nothing_else_is_said() -> None:
    away = ObservedSupervisor(trouble="Control store 127.0.0.1:19432 is away.")
    assert [(v.check, seen(v)) for v in health.verdicts(None, None, broker(), away, 0.5)] == [("supervised", "error")]


def test_a_job_that_was_never_started_is_in_no_trouble() -> None:
    found = health.verdicts(None, None, SILENT_BROKER, SUPERVISED, 0.5)
    assert {v.check for v in found} == set(health.CHECKS)
    assert all(v.passed for v in found)


def test_every_check_is_judged_once() -> None:
    found = [v.check for v in health.verdicts(running(batch()), 0, broker(), SUPERVISED, 0.5)]
    assert sorted(found) == sorted(health.CHECKS)


def test_a_verdict_is_no_news_when_only_its_numbers_changed() -> None:
    assert health.supervised(ObservedSupervisor(31.0)).summary == health.supervised(ObservedSupervisor(46.0)).summary
    assert health.supervised(ObservedSupervisor(31.0)).summary != health.supervised(ObservedSupervisor(None)).summary


def test_a_topic_that_is_as_declared_passes() -> None:
    assert seen(health.as_declared(STOCKS, broker(), {"stock_stats@v1": "id-1"})) == "passed"


def test_a_topic_made_again_under_its_name_is_an_error() -> None:
    verdict = health.as_declared(STOCKS, broker(), {"stock_stats@v1": "id-0"})
    assert seen(verdict) == "error"
    assert "Made again" in verdict.says


def test_a_topic_that_a_release_needs_and_has_gone_is_an_error_one_not_made_yet_a_warning() -> None:
    empty = replace(broker(), topics={})
    assert seen(health.as_declared(STOCKS, empty, {"stock_stats@v1": "id-1"})) == "error"
    assert seen(health.as_declared(STOCKS, empty, {})) == "warning"


def test_a_topic_with_other_settings_than_declared_is_a_warning() -> None:
    other = replace(broker(), topics={"stocks": topic(partitions=2)})
    assert seen(health.as_declared(STOCKS, other, {})) == "warning"


def test_a_topic_on_a_dead_broker_is_an_error() -> None:
    assert seen(health.as_declared(STOCKS, SILENT_BROKER, {})) == "error"
