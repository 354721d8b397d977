"""All streams at a glance: one asset whose newest materialization holds a table, and numbers that plot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from platform_core.control import catch_up, releases
from platform_core.control.releases import CANDIDATE
from platform_core.orchestrate import facts, observed_state, state_reader
from platform_core.orchestrate.facts import NOTHING_YET, REPORT_SECONDS, LastReport
from platform_core.orchestrate.keys import OVERVIEW, live_key
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.streams import cursor_of, told_by
from platform_core.orchestrate.topics import ask

WAITS_SECONDS = 30.0  # a run that has not begun by then is told of
_HEAD = "| stream | release | does | records/s | behind | freshness | watermark | candidate |\n" + "|---" * 8 + "|"


@dataclass(frozen=True)
class StreamSummary:
    """One line of the table; a job that was never started has no release."""

    job: str
    release: observed_state.ObservedRelease | None
    behind: int | None
    coming: str = ""  # the candidate and how far it has come, or what the live release catches up


def overview_node() -> dg.AssetSpec:
    return dg.AssetSpec(
        OVERVIEW,
        group_name="overview",
        description="All streams at a glance. The newest materialization has the table; Plots has their numbers over "
        "time. The same in a terminal: `weir status`.",
        metadata={"cli": dg.MetadataValue.md("`weir status --watch`")},
    )


def overview_told(platform: Platform) -> dg.SensorDefinition:
    @dg.sensor(
        name="overview_told",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells of all streams in one table, once a minute while one of them moves.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        now, told = time.time(), told_by(context.cursor)
        streams, waiting = look(platform), waiting_runs(context.instance, now)
        subject = "; ".join([*(f"{one.job} {_name(one)} {does(one)}" for one in streams), *waiting])
        moved = sum(one.release.position for one in streams if one.release)
        last = told.get("streams", NOTHING_YET)
        if (last.subject, last.place) == (subject, moved) or now - last.at < REPORT_SECONDS:
            return dg.SensorResult(cursor=context.cursor, skip_reason=dg.SkipReason("nothing new"))
        event = dg.AssetMaterialization(OVERVIEW, metadata=numbers(streams, waiting, now))
        cursor = cursor_of({"streams": LastReport(subject, moved, now)})
        return dg.SensorResult(asset_events=[event], cursor=cursor, skip_reason=dg.SkipReason("reported"))

    return sensor


def look(platform: Platform) -> list[StreamSummary]:
    seen = state_reader.look(platform.store, platform.jobs)
    broker, ahead = ask(platform.settings, platform.topics), _coming(platform)
    found: list[StreamSummary] = []
    for job in sorted(platform.jobs):
        release = seen.releases.get(job)
        left = None if release is None else observed_state.behind(release, platform.reads(job), broker)
        found.append(StreamSummary(job, release, left, ahead.get(job, "")))
    return found


def _coming(platform: Platform) -> Mapping[str, str]:
    """By job, of the newest release that is not yet where it shall be."""
    ahead = catch_up.read(platform.store)
    kept = [one for one in releases.all(platform.store) if one.state in (*CANDIDATE, "live") and one.id in ahead]
    return {one.id.job: f"{one.title}: {ahead[one.id]}" for one in kept}


def waiting_runs(instance: dg.DagsterInstance, now: float) -> list[str]:
    """Runs that were launched and have not begun, and those that were given up for it within the hour."""
    early = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
    before = datetime.fromtimestamp(now - WAITS_SECONDS, UTC)
    late = instance.get_runs(dg.RunsFilter(statuses=early, created_before=before), limit=20)
    hour_ago = datetime.fromtimestamp(now, UTC) - timedelta(hours=1)
    failed = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.FAILURE],
        tags={".dagster/run_failure_reason": "START_TIMEOUT"},
        updated_after=hour_ago,
    )
    return [
        *(f"[{run.job_name} {run.run_id[:8]}](/runs/{run.run_id}) has not begun" for run in late),
        *(
            f"[{run.job_name} {run.run_id[:8]}](/runs/{run.run_id}) never began"
            for run in instance.get_runs(failed, limit=20)
        ),
    ]


def numbers(streams: list[StreamSummary], waiting: list[str], now: float) -> dict[str, dg.RawMetadataValue]:
    """One shape, whatever is known."""
    told = {one.job: facts.table_facts(one.release, one.behind, now) for one in streams if one.release}
    return {
        "streams": dg.MetadataValue.md(table(streams, now)),
        "runs that wait": dg.MetadataValue.md("  \n".join(waiting) or "none"),
        "running": sum(1 for one in streams if one.release and one.release.runs),
        **{f"records/s of {one.job}": _plots(told, one.job, "rows_per_second") for one in streams},
        **{f"behind of {one.job}": _plots(told, one.job, "lag") for one in streams},
        **{f"freshness of {one.job}": _plots(told, one.job, "freshness_seconds") for one in streams},
    }


def _plots(told: Mapping[str, Mapping[str, dg.RawMetadataValue]], job: str, name: str) -> dg.RawMetadataValue:
    return told[job][name] if job in told else 0


def table(streams: list[StreamSummary], now: float) -> str:
    return "\n".join([_HEAD, *(_line(one, now) for one in streams)])


def _line(one: StreamSummary, now: float) -> str:
    job = f"[{one.job}](/assets/{'/'.join(live_key(one.job).path)})"
    if one.release is None:
        return f"| {job} | - | never started | - | - | - | - | {one.coming} |"
    told = facts.table_facts(one.release, one.behind, now)
    mark = f"{told['watermark_behind_seconds']} s ago" if one.release.watermark_ms else "none yet"
    cells = (job, one.release.name, does(one), told["rows_per_second"], told["lag"], f"{told['freshness_seconds']} s")
    return "| " + " | ".join(map(str, (*cells, mark, one.coming))) + " |"


def _name(one: StreamSummary) -> str:
    return one.release.name if one.release else "-"


def does(one: StreamSummary) -> str:
    """What its driver does, or that it should and does not."""
    release = one.release
    if release is None:
        return "never started"
    if release.wanted != "run":
        return {"stop": "stopped", "pause": "paused"}.get(release.wanted or "", "stopped")
    return release.driver.state if release.runs and release.driver else "wanted to run, no driver"
