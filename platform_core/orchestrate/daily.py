"""Daily tables in Dagster: a partitioned asset, a schedule for the day that is over, a sensor for new records."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from time import monotonic
from zoneinfo import ZoneInfo

import dagster as dg

from platform_core.declare import DailyTable
from platform_core.orchestrate import first_days
from platform_core.orchestrate.days import Computed, compute
from platform_core.orchestrate.keys import table_key
from platform_core.orchestrate.nodes import daily_table_node
from platform_core.orchestrate.refresh import Refreshed, days_to_refresh
from platform_core.orchestrate.topics import ask
from platform_core.settings import Settings

DAYS_A_RUN = 31  # one reading of the topic and one session for so many days of a backfill


def days_of(table: DailyTable) -> dg.DailyPartitionsDefinition:
    """The days up to and with today, which is computed again while it lasts."""
    return dg.DailyPartitionsDefinition(start_date=table.since.isoformat(), timezone=table.zone, end_offset=1)


def daily_asset(table: DailyTable, settings: Settings) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=f"compute_{table.name}",
        specs=[daily_table_node(table, days_of(table))],
        required_resource_keys={"spark"},
        backfill_policy=dg.BackfillPolicy.multi_run(DAYS_A_RUN),
        pool="spark",  # two batch sessions at once would starve the streams of a laptop
    )
    def asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult:  # pyright: ignore[reportMissingTypeArgument]
        began = monotonic()
        keys = sorted(date.fromisoformat(key) for key in context.partition_keys)
        done = compute(context.resources.spark.spark_session, settings, table, keys[0], keys[-1])
        return dg.MaterializeResult(metadata=_told(done, monotonic() - began))

    return asset


def _told(done: Computed, seconds: float) -> dict[str, int | float]:
    return {
        "rows": done.rows,
        "days": (done.last - done.first).days + 1,
        "records_read": done.records,
        "rejected": done.rejected,
        "seconds": round(seconds, 1),
    }


def daily_job(table: DailyTable) -> "dg.UnresolvedAssetJobDefinition":
    return dg.define_asset_job(
        f"compute_{table.name}_days",
        selection=[table_key(table.name)],
        description=f"Computes days of {table.name} anew. Choose one day, or a range for a backfill.",
    )


def daily_schedule(table: DailyTable, job: "dg.UnresolvedAssetJobDefinition") -> dg.ScheduleDefinition:
    """A day once more when it is over and late records are in."""
    minutes = int(table.late_for.total_seconds() // 60)

    @dg.schedule(
        name=f"{table.name}_when_day_is_over",
        job=job,
        cron_schedule=f"{minutes % 60} {minutes // 60 % 24} * * *",
        execution_timezone=table.zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Computes the day of {table.zone} that has ended, {table.lateness} after its end.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        ended = context.scheduled_execution_time.astimezone(ZoneInfo(table.zone)).date() - timedelta(days=1)
        if ended < table.since:
            return dg.SkipReason(f"{ended} is before the first day, {table.since}")
        return dg.RunRequest(run_key=str(ended), partition_key=str(ended))

    return schedule


def daily_sensor(table: DailyTable, settings: Settings, job: "dg.UnresolvedAssetJobDefinition") -> dg.SensorDefinition:
    topic = table.input.topic.name

    @dg.sensor(
        name=f"{table.name}_on_new_records",
        job=job,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Computes the day again while topic {topic} grows, every {table.refresh} at most.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        now = datetime.now(tz=ZoneInfo(table.zone))
        seen = ask(settings, [topic])
        if seen.trouble or topic not in seen.topics:
            return dg.SkipReason(seen.trouble or f"topic {topic} does not exist yet")
        end = seen.topics[topic].written
        _find_first_day(table, settings, now)
        if not context.cursor:  # whatever is there is new, one interval from now: a platform that starts has other work
            return dg.SensorResult(cursor=Refreshed(0, now.timestamp()).to_json())
        days = days_to_refresh(Refreshed.from_json(context.cursor), end, now, table)
        if not days:
            return dg.SkipReason(f"nothing new in {topic}, or too soon")
        requests = [dg.RunRequest(run_key=f"{day}@{end}", partition_key=str(day)) for day in days]
        return dg.SensorResult(requests, cursor=Refreshed(end, now.timestamp()).to_json())

    return sensor


def _find_first_day(table: DailyTable, settings: Settings, now: datetime) -> None:
    """Once it is kept, `tree_changed` has the location loaded anew, with partitions from that day on."""
    if not first_days.known(settings, table):
        found = first_days.find(settings, table, now)
        if found is not None:
            first_days.keep(settings, table, found)


def daily_definitions(declared: DailyTable, settings: Settings) -> dg.Definitions:
    """Partitions, schedule and sensor begin where data begins."""
    table = replace(declared, since=first_days.first_day(settings, declared))
    job = daily_job(table)
    return dg.Definitions(
        assets=[daily_asset(table, settings)],
        jobs=[job],
        schedules=[daily_schedule(table, job)],
        sensors=[daily_sensor(table, settings, job)],
    )
