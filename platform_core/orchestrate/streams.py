"""Sensors of streams: `stream_facts` tells how they get on, `stream_health` raises what needs a person, `topics_seen`
keeps topics true. They look, decide by pure functions, and report events that belong to no run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from platform_core.names import ReleaseId
from platform_core.orchestrate import excerpts, facts, health, observed_state, state_reader
from platform_core.orchestrate.facts import NOTHING_YET, LastReport
from platform_core.orchestrate.health import HealthResult
from platform_core.orchestrate.keys import live_key, table_key, topic_key
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.topics import ask
from platform_core.read.tables import LiveTable

LOOK_SECONDS = 15  # with a lease of 15 s and a tick of 5 s, a dead driver shows well within a minute
SAY_AGAIN_SECONDS = 600.0  # a verdict that stays as it is; each event stays in Dagster's log for ever

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


def stream_facts(platform: Platform) -> dg.SensorDefinition:
    @dg.sensor(
        name="stream_facts",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells how each stream gets on: a materialization of its table, once a minute while it moves.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told, now = told_by(context.cursor), time.time()
        seen = state_reader.look(platform.store, platform.jobs)
        broker = ask(platform.settings, platform.topics)
        events: list[Event] = []
        for name, release in seen.releases.items():
            events += _of_table(platform, name, release, broker, told, now)
            events += _of_release(platform, name, release, told, now)
        return _result(events, told)

    return sensor


def topics_seen(platform: Platform) -> dg.SensorDefinition:
    @dg.sensor(
        name="topics_seen",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Keeps topics true: what the broker has of each, and whether that is what was declared.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told, now = told_by(context.cursor), time.time()
        broker, ids = ask(platform.settings, platform.topics), state_reader.topic_ids(platform.store, platform.jobs)
        events: list[Event] = []
        for name, topic in broker.topics.items():
            if told.get(name, NOTHING_YET).due(topic.facts.id, topic.written, now):
                told[name] = LastReport(topic.facts.id, topic.written, now)
                events.append(dg.AssetObservation(topic_key(name), metadata=facts.topic_facts(topic)))
        for name, declared in platform.topics.items():
            verdict = health.as_declared(declared, broker, ids.get(name, {}))
            events += _news(topic_key(name), [verdict], told, now)
        return _result(events, told)

    return sensor


def stream_health(platform: Platform) -> dg.SensorDefinition:
    @dg.sensor(
        name="stream_health",
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Raises what needs a person: the checks of each live release, when a verdict changes.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told, now = told_by(context.cursor), time.time()
        events: list[Event] = []
        for name, verdicts in judged(platform).items():
            events += _news(live_key(name), verdicts, told, now)
        return _result(events, told)

    return sensor


def judged(platform: Platform) -> dict[str, list[HealthResult]]:
    """The verdicts on every job, now."""
    seen = state_reader.look(platform.store, platform.jobs)
    broker = ask(platform.settings, platform.topics)
    return {name: _judge(platform, name, seen, broker) for name in platform.jobs}


def _judge(
    platform: Platform, name: str, seen: state_reader.Observation, broker: observed_state.ObservedBroker
) -> list[HealthResult]:
    release = seen.releases.get(name)
    left = None if release is None else observed_state.behind(release, platform.reads(name), broker)
    return health.verdicts(release, left, broker, seen.supervisor, platform.jobs[name].reject_limit)


def _of_table(
    platform: Platform,
    name: str,
    release: observed_state.ObservedRelease,
    broker: observed_state.ObservedBroker,
    told: dict[str, LastReport],
    now: float,
) -> list[Event]:
    job = platform.jobs[name]
    if not release.position or not told.get(name, NOTHING_YET).due(release.name, release.position, now):
        return []
    told[name] = LastReport(release.name, release.position, now)
    numbers = facts.table_facts(release, observed_state.behind(release, platform.reads(name), broker), now)
    live = LiveTable(job.output.name, platform.settings.storage.table(ReleaseId.parse(release.name)))
    rows = excerpts.some_rows(platform, name, live)
    return [dg.AssetMaterialization(table_key(job.output.name), metadata={**numbers, "some rows": rows})]


def _of_release(
    platform: Platform, name: str, release: observed_state.ObservedRelease, told: dict[str, LastReport], now: float
) -> list[Event]:
    """A materialization of the live node says that a driver has begun."""
    pid = release.driver.pid if release.driver and release.runs else None
    if pid is None or not told.get(f"{name} driver", NOTHING_YET).due(f"{release.name} {pid}", 0, now):
        return []
    told[f"{name} driver"] = LastReport(f"{release.name} {pid}", 0, now)
    metadata = {**facts.live_facts(release), "releases": excerpts.history(platform, name)}
    return [dg.AssetMaterialization(live_key(name), metadata=metadata)]


def _news(key: dg.AssetKey, verdicts: Sequence[HealthResult], told: dict[str, LastReport], now: float) -> list[Event]:
    """Verdicts that changed, or were last told long ago."""
    events: list[Event] = []
    for verdict in verdicts:
        if is_news(told, f"{key.to_user_string()} {verdict.check}", verdict.summary, now):
            events.append(evaluation(key, verdict))
    return events


def is_news(told: dict[str, LastReport], name: str, summary: str, now: float) -> bool:
    """Whether it was not told before, or long ago; it counts as told from now on."""
    last = told.get(name, NOTHING_YET)
    news = last.subject != summary or now - last.at >= SAY_AGAIN_SECONDS
    if news:
        told[name] = LastReport(summary, 0, now)
    return news


def evaluation(key: dg.AssetKey, verdict: HealthResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=verdict.check,
        passed=verdict.passed,
        description=verdict.says,
        severity=dg.AssetCheckSeverity.ERROR if verdict.grave else dg.AssetCheckSeverity.WARN,
        metadata=dict(verdict.numbers),
    )


def _result(events: list[Event], told: Mapping[str, LastReport]) -> dg.SensorResult:
    """No run comes of it; the tick's line says what was reported."""
    words = f"{len(events)} events reported" if events else "nothing new"
    return dg.SensorResult(asset_events=events, cursor=cursor_of(told), skip_reason=dg.SkipReason(words))


def told_by(cursor: str | None) -> dict[str, LastReport]:
    raw: Mapping[str, Any] = json.loads(cursor) if cursor else {}
    return {key: LastReport(*value) for key, value in raw.items()}


def cursor_of(told: Mapping[str, LastReport]) -> str:
    return json.dumps({key: [value.subject, value.place, value.at] for key, value in told.items()})
