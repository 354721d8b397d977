"""A candidate in Dagster: how it gets on, its checks, and the gate that they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from platform_core.control import checks, comparisons, positions, releases
from platform_core.control.store import ControlStore
from platform_core.cutover import gates
from platform_core.cutover.model import Move
from platform_core.declare import Expect, Stream, StreamingJob, Suite, Table, Topic
from platform_core.orchestrate.candidates import candidate_checks, candidate_job, candidates_compared
from platform_core.orchestrate.keys import candidate_key
from platform_core.orchestrate.platform import Platform
from tests.compare.paired import Job
from tests.compare.tables import stat
from tests.conftest import Database

pytestmark = pytest.mark.stack
SCHEMA = "ticker STRING, window_start TIMESTAMP, trade_count BIGINT, avg_price DECIMAL(18,6)"
FEW = Expect("few", "expect_column_values_to_be_between", {"column": "trade_count", "max_value": 5})
NAMED = Expect("named", "expect_column_values_to_not_be_null", {"column": "ticker"})


@pytest.fixture
def job(postgres: Database, store: ControlStore, tmp_path: Path) -> Job:
    """Its live release and the candidate stand at the same offsets, with the same rows."""
    (tmp_path / "postgres.password").write_text(postgres.settings.password())
    made = Job(postgres.settings.model_copy(update={"home": tmp_path}), store)
    for number, state in ((1, "live"), (2, "following")):
        made.release(number, state)
        made.commit(number, [stat("A"), stat("B", count=9)], at=10)
    return made


@pytest.fixture
def platform(job: Job) -> Platform:
    topic = Topic(name=f"{job.name}.in", value="price BIGINT", partitions=1)
    table = Table(name="stats", schema=SCHEMA, key=("ticker", "window_start"))
    declared = StreamingJob(
        name=job.name, inputs={"trades": Stream(topic)}, transform=lambda trades: trades, output=table
    )
    suite = Suite(table="stats", newest_by="window_start", newest="1 hour", expectations=(FEW, NAMED))
    return Platform(job.settings, {job.name: declared}, {topic.name: topic}, {}, {"stats": suite})


def checked(platform: Platform, name: str) -> dict[str, dg.AssetCheckEvaluation]:
    """What a run of the candidate's checks says, by check."""
    made = dg.Definitions(
        [dg.AssetSpec(candidate_key(name))],
        asset_checks=[candidate_checks(platform, name)],
        jobs=[candidate_job(platform, name)],
    )
    with dg.DagsterInstance.ephemeral() as instance:
        run: Any = made.resolve_job_def(f"check_candidate_of_{name}")
        told = run.execute_in_process(instance=instance).get_asset_check_evaluations()
    return {one.check_name: one for one in told}


def ticked(platform: Platform, cursor: str | None = None) -> dg.SensorResult:
    sensor: Any = candidates_compared(platform)
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, cursor=cursor) as context:
        return sensor(context)


def differs(job: Job) -> None:
    """A comparison somewhere else found a difference."""
    newest = positions.latest(job.store, job.id(2))
    assert newest is not None
    figures = {"rows_left": 2, "rows_right": 1, "differing": 1, "unexplained": 1, "explained": {}}
    why: dict[str, Any] = {
        "reasons": ["1 key in v1 alone"],
        "notes": [],
        "figures": figures,
        "seconds": 0.1,
        "by": "ann",
    }
    comparisons.keep(job.store, (job.id(1), 0), (job.id(2), 0), newest[0], passed=False, **why)


def test_a_candidate_is_compared_and_checked_by_the_suite_of_its_table(platform: Platform, job: Job) -> None:
    told = checked(platform, job.name)
    assert {name: one.passed for name, one in told.items()} == {"equals_live": True, "few": False, "named": True}
    assert told["equals_live"].metadata["rows_candidate"].value == 2
    assert told["few"].metadata["release"].value == str(job.id(2))
    newest = comparisons.newest(job.store, job.id(1), job.id(2))
    assert newest is not None
    assert newest.passed


def test_a_failing_check_is_a_gate_of_the_cutover(platform: Platform, job: Job) -> None:
    checked(platform, job.name)
    facts = gates.facts_of(job.store, Move("stats", job.id(1), job.id(2)))
    assert [one.what for one in gates.refusals(replace(facts, runs=True))] == [
        f"{job.id(2)} fails its check few (does not hold)"
    ]


def test_a_check_that_only_warns_is_no_gate(platform: Platform, job: Job) -> None:
    warns = replace(platform.suites["stats"], expectations=(replace(FEW, severity="warn"),))
    checked(replace(platform, suites={"stats": warns}), job.name)
    assert [one.passed for one in checks.of_release(job.store, job.id(2))] == [False]
    assert checks.failing(job.store, job.id(2)) == []


def test_without_a_candidate_that_follows_there_is_nothing_to_check(platform: Platform, job: Job) -> None:
    releases.set_state(job.store, job.id(2), "replaying", "a test")
    assert checked(platform, job.name) == {}, "a tick would say that somebody has looked"
    assert comparisons.newest(job.store, job.id(1), job.id(2)) is None


def test_the_sensor_has_a_following_candidate_checked_once_in_a_while(platform: Platform, job: Job) -> None:
    first = ticked(platform)
    assert [one.job_name for one in first.run_requests or ()] == [f"check_candidate_of_{job.name}"]
    assert ticked(platform, first.cursor).run_requests == []


def test_a_candidate_that_replays_is_told_and_not_compared(platform: Platform, job: Job) -> None:
    releases.set_state(job.store, job.id(2), "replaying", "a test")
    job.commit(1, [stat("C")], at=25)
    tick = ticked(platform)
    (event,) = tick.asset_events
    assert isinstance(event, dg.AssetMaterialization)
    assert event.metadata["state"].value == "replaying"
    assert event.metadata["behind_live"].value == 15
    assert tick.run_requests == []


def test_a_new_difference_is_told_once_whoever_found_it(platform: Platform, job: Job) -> None:
    cursor = ticked(platform).cursor
    differs(job)
    tick = ticked(platform, cursor)
    (event,) = tick.asset_events
    assert isinstance(event, dg.AssetCheckEvaluation)
    assert not event.passed
    assert "1 key in v1 alone" in str(event.description)
    assert ticked(platform, tick.cursor).asset_events == []


def test_without_a_candidate_nothing_is_told(platform: Platform, job: Job) -> None:
    releases.set_state(job.store, job.id(2), "retired", "a test")
    tick = ticked(platform)
    assert (tick.asset_events, tick.run_requests) == ([], [])
