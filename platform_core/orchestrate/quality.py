"""Expectations follow the materializations of their table: a row that should not be there shows within a minute."""

from __future__ import annotations

import time

import dagster as dg

from platform_core.declare import Suite
from platform_core.orchestrate import state_reader
from platform_core.orchestrate.expectations import newest_rows, result_of, validate
from platform_core.orchestrate.facts import NOTHING_YET, LastReport
from platform_core.orchestrate.keys import table_key
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.streams import Event, cursor_of, is_news, told_by


def quality_followed(platform: Platform) -> dg.SensorDefinition:
    """In the code server, where it takes 40 ms: a run would first import great-expectations for six seconds."""

    @dg.sensor(
        name="quality_followed",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Checks the newest rows of each table with a suite, once a minute while it moves.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told, now = told_by(context.cursor), time.time()
        seen = state_reader.look(platform.store, platform.jobs).releases
        events: list[Event] = []
        for suite in platform.suites.values():
            writer = next(name for name, job in platform.jobs.items() if job.output.name == suite.table)
            release = seen.get(writer)
            if release and release.position and _due(told, suite, release.name, release.position, now):
                events += _verdicts(platform, suite, told, now)
        words = f"{len(events)} verdicts reported" if events else "nothing new"
        return dg.SensorResult(asset_events=events, cursor=cursor_of(told), skip_reason=dg.SkipReason(words))

    return sensor


def _due(told: dict[str, LastReport], suite: Suite, release: str, position: int, now: float) -> bool:
    due = told.get(suite.table, NOTHING_YET).due(release, position, now)
    if due:
        told[suite.table] = LastReport(release, position, now)
    return due


def _verdicts(platform: Platform, suite: Suite, told: dict[str, LastReport], now: float) -> list[Event]:
    """Those that changed, or were last told long ago."""
    rows, release = newest_rows(platform, suite)
    events: list[Event] = []
    for finding in validate(rows, suite.expectations):
        result = result_of(table_key(suite.table), finding, len(rows), release)
        summary = f"{release} {'passed' if result.passed else 'failed'}: {result.description}"
        if is_news(told, f"{suite.table} {finding.expect.name}", summary, now):
            events.append(_evaluation(suite, result))
    return events


def _evaluation(suite: Suite, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=table_key(suite.table),
        check_name=str(result.check_name),
        passed=result.passed,
        description=result.description,
        severity=result.severity,
        metadata=result.metadata,
    )
