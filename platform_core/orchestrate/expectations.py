"""Expectation suites in Dagster: each expectation is an asset check on its table.

great-expectations runs over pandas, on the newest rows of the live release: a check then takes two seconds and no JVM,
where Spark would take fifteen and 600 MB beside the drivers. Results carry verdicts alone (BOOLEAN_ONLY): fuller
formats keep the values that failed, and those may be personal.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from platform_core.control import aliases
from platform_core.declare import Expect, Suite
from platform_core.orchestrate.keys import table_key
from platform_core.orchestrate.platform import Platform

if TYPE_CHECKING:
    import pandas as pd

    from platform_core.read.tables import LiveTable

_CONNECT = ("pyspark.sql.connect.dataframe", "pyspark.sql.connect.session")


@dataclass(frozen=True)
class ExpectationResult:
    expect: Expect
    holds: bool
    trouble: str = ""  # why it could not be evaluated


def suite_checks(platform: Platform, suite: Suite) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(
        name=f"quality_of_{suite.table}",
        specs=[_spec(suite, expect) for expect in suite.expectations],
        can_subset=True,
        compute_kind="great_expectations",
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted = {key.name for key in context.selected_asset_check_keys}
        chosen = tuple(expect for expect in suite.expectations if expect.name in wanted)
        rows, release = newest_rows(platform, suite)
        results = [result_of(table_key(suite.table), finding, len(rows), release) for finding in validate(rows, chosen)]
        yield from results
        _tell_without_run(context.instance, suite, results)

    return checks


def _tell_without_run(instance: dg.DagsterInstance, suite: Suite, results: list[dg.AssetCheckResult]) -> None:
    """Says it once more, as events of no run, which stay valid beside the stream's materializations, of no run too.

    A run's result is to Dagster one of the newest materialization alone: within the minute, with the next report of the
    stream's progress, every check would read "not evaluated".
    """
    for result in results:
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=table_key(suite.table),
                check_name=str(result.check_name),
                passed=result.passed,
                description=result.description,
                severity=result.severity,
                metadata=result.metadata,
            )
        )


def suite_schedule(platform: Platform, suite: Suite) -> dg.ScheduleDefinition:
    job = dg.define_asset_job(
        f"check_{suite.table}",
        selection=dg.AssetSelection.checks(
            *(dg.AssetCheckKey(table_key(suite.table), e.name) for e in suite.expectations)
        ),
        description=f"Checks the newest {suite.newest} of {suite.table} against its suite.",
    )

    @dg.schedule(
        name=f"{suite.table}_quality",
        job=job,
        cron_schedule=suite.schedule,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Checks {suite.table} while it has a live release.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if aliases.live(platform.store, suite.table) is None:
            return dg.SkipReason(f"{suite.table} has no live release yet")
        return dg.RunRequest(run_key=context.scheduled_execution_time.isoformat())

    return schedule


def newest_rows(platform: Platform, suite: Suite) -> tuple["pd.DataFrame", str]:
    """Those of the live release, and which release that is."""
    from platform_core.read import open_tables

    table = open_tables(platform.settings, platform.store).table(suite.table)
    return rows_of(table, suite), str(table.release)


def rows_of(table: "LiveTable", suite: Suite) -> "pd.DataFrame":
    """The rows within the suite's reach of the watermark that the table was written with."""
    import pyarrow.compute as pc

    position = table.position()
    watermark = timedelta(milliseconds=position.watermark_ms if position else 0)
    since = datetime.fromtimestamp(0, UTC) + max(watermark - suite.reaches_back, timedelta())
    return table.pandas(filter=pc.field(suite.newest_by) >= since)


def validate(rows: "pd.DataFrame", expectations: tuple[Expect, ...]) -> list[ExpectationResult]:
    """What each expectation says of the rows; one that cannot be evaluated, for want of its column, does not hold."""
    with without_spark_connect():
        import great_expectations as gx
        from great_expectations.core.expectation_suite import ExpectationSuite
        from great_expectations.data_context.types.base import ProgressBarsConfig
        from great_expectations.expectations.registry import get_expectation_impl

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    context.enable_analytics(False)
    stated: list[Any] = [get_expectation_impl(e.kind)(**e.arguments, meta={"name": e.name}) for e in expectations]
    suite = context.suites.add(ExpectationSuite(name="suite", expectations=stated))
    frame = context.data_sources.add_pandas("rows").add_dataframe_asset("rows")
    batch = frame.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": rows})
    results = {_name(r): r for r in batch.validate(suite, result_format="BOOLEAN_ONLY").results}
    return [_finding(expect, results[expect.name]) for expect in expectations]


def _name(result: Any) -> str:
    return result.expectation_config.meta["name"]


@contextmanager
def without_spark_connect() -> Generator[None]:
    """Makes Spark's Connect client look absent, which great-expectations takes in its stride.

    Importing it ends the process (sys.exit(0) in pyspark/sql/connect/utils.py of 4.2) where __main__ has no file, as in
    Dagster's run workers, and googleapis-common-protos is not installed.
    """
    hidden = [name for name in _CONNECT if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  None makes an import fail, as documented
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _finding(expect: Expect, result: Any) -> ExpectationResult:
    raised = [info for info in _infos(result.exception_info) if info.get("raised_exception")]
    trouble = str(raised[0].get("exception_message", "")).splitlines()[0] if raised else ""
    return ExpectationResult(expect, bool(result.success), trouble)


def _infos(info: Any) -> list[dict[str, Any]]:
    """One a metric when metrics failed, else the expectation's own."""
    return [info] if "raised_exception" in info else list(info.values())


def _spec(suite: Suite, expect: Expect) -> dg.AssetCheckSpec:
    about = expect.description or f"{expect.kind}: {dict(expect.arguments)}"
    return dg.AssetCheckSpec(expect.name, asset=table_key(suite.table), description=about)


def result_of(key: dg.AssetKey, finding: ExpectationResult, rows: int, release: str) -> dg.AssetCheckResult:
    severity = dg.AssetCheckSeverity.ERROR if finding.expect.severity == "error" else dg.AssetCheckSeverity.WARN
    return dg.AssetCheckResult(
        passed=finding.holds,
        asset_key=key,
        check_name=finding.expect.name,
        severity=severity,
        description=finding.trouble or ("holds" if finding.holds else "does not hold"),
        metadata={"rows": rows, "release": release, "expectation": finding.expect.kind},
    )
