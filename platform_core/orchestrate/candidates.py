"""Checks of candidates: the comparison with the live release, and the suite of its table over the candidate's rows.

A run computes them, launched by a person or by the sensor while a candidate follows. They are kept in the control store
too, where a cutover's gates look.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from platform_core.control import catch_up, checks, comparisons, positions, releases
from platform_core.control.checks import Said
from platform_core.control.comparisons import ComparisonRecord
from platform_core.control.position import as_text
from platform_core.control.releases import CANDIDATE, Release
from platform_core.declare import Suite
from platform_core.errors import WeirError
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from platform_core.orchestrate.expectations import result_of, rows_of, validate
from platform_core.orchestrate.facts import NOTHING_YET, LastReport
from platform_core.orchestrate.keys import candidate_key
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.streams import Event, cursor_of, told_by
from platform_core.read.tables import LiveTable

EQUALS_LIVE = "equals_live"
COMPARE_SECONDS = 300.0  # a verdict of 15 minutes closes a cutover's gate
_ABOUT = "At the same offsets the candidate's table has the live one's rows, but for what the job expects to differ."


def candidate_checks(platform: Platform, job: str) -> dg.AssetChecksDefinition:
    suite = platform.suites.get(platform.jobs[job].output.name)

    @dg.multi_asset_check(name=f"candidate_of_{job}", specs=_specs(job, suite), can_subset=True)
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        chosen = {key.name for key in context.selected_asset_check_keys}
        candidate = candidate_of(platform, job)
        if candidate is None or candidate.state != "following":
            context.log.info(_nothing_yet(candidate))  # and no result: what was never looked at shows no green tick
            return
        if EQUALS_LIVE in chosen:
            yield _compared(platform, job, f"Dagster run {context.run.run_id}")
        if suite is not None:
            yield from _by_suite(platform, job, candidate.id, suite, chosen)

    return check


def candidate_job(platform: Platform, job: str) -> Any:  # Dagster names the type in a private module alone
    keys = [dg.AssetCheckKey(candidate_key(job), spec.name) for spec in _specs(job, _suite(platform, job))]
    return dg.define_asset_job(
        _job_name(job),
        selection=dg.AssetSelection.checks(*keys),
        description=f"Compares the candidate of {job} with its live release, and checks its rows by the table's suite.",
    )


def candidates_compared(platform: Platform) -> dg.SensorDefinition:
    @dg.sensor(
        name="candidates_compared",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        jobs=[candidate_job(platform, job) for job in platform.jobs],
        description="Tells how candidates get on; while one follows, has it compared and checked every five minutes.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told, now = told_by(context.cursor), time.time()
        events: list[Event] = []
        asked: list[dg.RunRequest] = []
        for job in platform.jobs:
            candidate = candidate_of(platform, job)
            if candidate is not None:
                events += _progress(platform, candidate, told, now)
                events += _news(platform, candidate, told, now)
                asked += _due(candidate, told, now)
        words = dg.SkipReason(f"{len(events)} events reported" if events else "nothing new")
        skip = None if asked else words
        return dg.SensorResult(run_requests=asked, asset_events=events, cursor=cursor_of(told), skip_reason=skip)

    return sensor


def candidate_of(platform: Platform, job: str) -> Release | None:
    return next((one for one in releases.of_job(platform.store, job) if one.state in CANDIDATE), None)


def _suite(platform: Platform, job: str) -> Suite | None:
    return platform.suites.get(platform.jobs[job].output.name)


def _job_name(job: str) -> str:
    return f"check_candidate_of_{job}"


def _specs(job: str, suite: Suite | None) -> list[dg.AssetCheckSpec]:
    key = candidate_key(job)
    stated = () if suite is None else suite.expectations
    return [
        dg.AssetCheckSpec(EQUALS_LIVE, asset=key, description=_ABOUT),
        *(dg.AssetCheckSpec(one.name, asset=key, description=one.description or one.kind) for one in stated),
    ]


def _nothing_yet(candidate: Release | None) -> str:
    return f"{candidate.id} is {candidate.state}: nothing to check yet." if candidate else "There is no candidate."


def _compared(platform: Platform, job: str, by: str) -> dg.AssetCheckResult:
    try:
        kept = compare(Caller(platform.settings, platform.store, by), job).kept
    except WeirError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    told = _evaluation(kept)
    return dg.AssetCheckResult(
        passed=told.passed,
        asset_key=told.asset_key,
        check_name=told.check_name,
        description=told.description,
        metadata=told.metadata,
    )


def _evaluation(kept: ComparisonRecord) -> dg.AssetCheckEvaluation:
    job, figures = kept.right.job, kept.figures
    says = "; ".join(kept.reasons if not kept.passed else kept.notes) or "no difference"
    return dg.AssetCheckEvaluation(
        asset_key=candidate_key(job),
        check_name=EQUALS_LIVE,
        passed=kept.passed,
        description=f"{kept.left} and {kept.right}: {says}",
        metadata={
            "rows_live": int(figures["rows_left"]),
            "rows_candidate": int(figures["rows_right"]),
            "differing": int(figures["differing"]),
            "unexplained": int(figures["unexplained"]),
            **{f"explained: {why}": int(count) for why, count in figures["explained"].items()},
            "versions": f"{kept.left_version} and {kept.right_version}",
            "position": dg.MetadataValue.json(as_text(kept.position.places)),
            "seconds": round(kept.seconds, 2),
            "side by side": dg.MetadataValue.md(f"`weir compare {job} --html FILE`"),
        },
    )


def _by_suite(
    platform: Platform, job: str, candidate: ReleaseId, suite: Suite, chosen: Iterable[str]
) -> Iterator[dg.AssetCheckResult]:
    names = set(chosen)
    table = LiveTable(suite.table, platform.settings.storage.table(candidate), candidate)
    rows = rows_of(table, suite)
    found = validate(rows, tuple(one for one in suite.expectations if one.name in names))
    results = [result_of(candidate_key(job), finding, len(rows), str(candidate)) for finding in found]
    said = [
        Said(str(one.check_name), one.passed, one.severity is dg.AssetCheckSeverity.ERROR, one.description or "")
        for one in results
    ]
    checks.keep(platform.store, candidate, said)
    yield from results


def _progress(platform: Platform, candidate: Release, told: dict[str, LastReport], now: float) -> list[Event]:
    """A materialization when it becomes something else, whereby verdicts on what it was are no longer shown."""
    job, subject = candidate.id.job, f"{candidate.id} {candidate.state}"
    live = next(one.id for one in releases.of_job(platform.store, job) if one.state == "live")
    stands, ahead = _stands(platform, candidate.id), _stands(platform, live)
    who = {"release": str(candidate.id), "state": candidate.state}
    last = told.get(f"{job} candidate", NOTHING_YET)
    if not last.due(subject, stands, now):
        return []
    told[f"{job} candidate"] = LastReport(subject, stands, now)
    event = dg.AssetObservation if last.subject == subject else dg.AssetMaterialization
    coming = catch_up.of(platform.store, candidate.id)
    how_far = {"progress": str(coming or "-"), "done": round(coming.share, 4) if coming else 0.0}
    return [event(candidate_key(job), metadata={**who, **how_far, "position": stands, "behind_live": ahead - stands})]


def _stands(platform: Platform, release: ReleaseId) -> int:
    newest = positions.latest(platform.store, release)
    return 0 if newest is None else sum(at for parts in newest[0].offsets.values() for at in parts.values())


def _news(platform: Platform, candidate: Release, told: dict[str, LastReport], now: float) -> list[Event]:
    """Each comparison once, whoever asked for it."""
    job = candidate.id.job
    found = next((one for one in comparisons.of_job(platform.store, job, 1) if one.right == candidate.id), None)
    if found is None or told.get(f"{job} compared", NOTHING_YET).place == found.id:
        return []
    told[f"{job} compared"] = LastReport(str(candidate.id), found.id, now)
    return [_evaluation(found)]


def _due(candidate: Release, told: dict[str, LastReport], now: float) -> list[dg.RunRequest]:
    job = candidate.id.job
    last = told.get(f"{job} asked", NOTHING_YET)
    if candidate.state != "following" or (last.subject == str(candidate.id) and now - last.at < COMPARE_SECONDS):
        return []
    told[f"{job} asked"] = LastReport(str(candidate.id), 0, now)
    return [dg.RunRequest(job_name=_job_name(job), run_key=f"{candidate.id} at {int(now)}")]
