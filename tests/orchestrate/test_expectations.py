"""A suite as asset checks: read from the live table, told in a way that lasts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from platform_core.control import aliases
from platform_core.control.position import Position
from platform_core.declare import Expect, Suite
from platform_core.names import ReleaseId
from platform_core.orchestrate.expectations import newest_rows, suite_checks, suite_schedule
from platform_core.orchestrate.keys import table_key
from platform_core.orchestrate.platform import Platform

pytestmark = pytest.mark.stack

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
SUITE = Suite(
    table="",
    newest_by="at",
    newest="2 hours",
    expectations=(
        Expect("positive", "expect_column_values_to_be_between", {"column": "price", "min_value": 0}),
        Expect("small", "expect_column_values_to_be_between", {"column": "price", "max_value": 5}, severity="warn"),
    ),
)


@pytest.fixture
def suite(platform: Platform) -> Suite:
    """Of the platform's table, whose live release has a row an hour up to noon, at prices 0 to 9."""
    (job,) = platform.jobs.values()
    release = ReleaseId(job.name, 1)
    at = [NOON - timedelta(hours=9 - n) for n in range(10)]
    rows = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "price": list(range(10))})
    position = Position(str(release), 1, {}, watermark_ms=int(NOON.timestamp() * 1000))
    told = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
    write_deltalake(platform.settings.storage.table(release).uri, rows, commit_properties=told)
    aliases.point(platform.store, job.output.name, release, position, "ann")
    return replace(SUITE, table=job.output.name)


def executed(platform: Platform, suite: Suite, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    schedule = suite_schedule(platform, suite)
    made = dg.Definitions(
        [dg.AssetSpec(table_key(suite.table))], asset_checks=[suite_checks(platform, suite)], schedules=[schedule]
    )
    job: Any = made.resolve_job_def(schedule.job_name)
    return job.execute_in_process(instance=instance)


def test_a_suite_reads_the_newest_rows_of_the_live_release(platform: Platform, suite: Suite) -> None:
    rows, release = newest_rows(platform, suite)
    assert sorted(rows["price"]) == [7, 8, 9]
    assert release == f"{suite.table}@v1"


def test_each_expectation_is_a_check_with_its_severity(platform: Platform, suite: Suite) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        told = executed(platform, suite, instance).get_asset_check_evaluations()
    found = {check.check_name: (check.passed, check.severity, check.metadata["rows"].value) for check in told}
    assert found == {
        "positive": (True, dg.AssetCheckSeverity.ERROR, 3),
        "small": (False, dg.AssetCheckSeverity.WARN, 3),
    }


def test_verdicts_outlast_the_streams_next_report(platform: Platform, suite: Suite) -> None:
    """A run's verdict would read "not evaluated" from the next materialization on; one without a run does not."""
    key = dg.AssetCheckKey(table_key(suite.table), "small")
    with dg.DagsterInstance.ephemeral() as instance:
        executed(platform, suite, instance)
        instance.report_runless_asset_event(dg.AssetMaterialization(table_key(suite.table)))
        newest = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)[0]
    assert newest.run_id == ""
    assert newest.status.value == "FAILED"


def test_a_table_without_a_live_release_is_not_checked(platform: Platform) -> None:
    schedule: Any = suite_schedule(platform, replace(SUITE, table="nobody"))
    assert isinstance(schedule(dg.build_schedule_context(scheduled_execution_time=NOON)), dg.SkipReason)
