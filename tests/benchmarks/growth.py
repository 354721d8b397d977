"""What a batch costs on a table a hundred times as large: a driver at work on a table that has a past."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import duckdb

from ingest.generators.stocks import TICKERS
from platform_core.control import progress
from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_job
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import table_schema
from tests.benchmarks.asked import Asked
from tests.benchmarks.figures import Figure, attempted
from tests.benchmarks.live import await_first_batch, driver, sender
from tests.benchmarks.platform import Platform, platform

NOTES = (
    "Growth: the driver's own batch seconds (median), live, on a table that holds rows up to now before it starts: an "
    "hour of stock_stats (36,000 rows) or 100 hours of it, 20,000 or 2 million views, 10,000 or 1 million words.",
)
LARGER = 100
ROWS = {"stock_stats": 36_000, "clickstream": 20_000, "word_count": 10_000}
RATE = {"stock_stats": 1000, "clickstream": 1000, "word_count": 200}
HISTORY = {
    "stock_stats": """
        SELECT $tickers[1 + n % 10] AS ticker, then_ AS window_start, then_ + INTERVAL 5 SECOND AS window_end,
               500 AS trade_count, 2500000 AS sum_price, 4990 AS min_price, 5000 AS avg_price,
               strftime(then_, '%Y-%m-%dT%H') AS _part
        FROM (SELECT n, make_timestamp(($now - n // 10) * 1000000) AS then_ FROM range($rows) AS r(n))""",
    "clickstream": """
        SELECT 'past-' || n AS view_id, n % 1000 AS user_id, 'user' AS user_name, '10000' AS zipcode,
               ['chess'] AS interests, 'terms' AS search_terms, 'page' AS page, then_ AS viewed_at, NULL AS searched_at,
               strftime(then_, '%Y-%m-%d') AS _part
        FROM (SELECT n, make_timestamp(($now - n // 2) * 1000000) AS then_ FROM range($rows) AS r(n))""",
    "word_count": """
        SELECT 'past' || n AS word, n AS count, lpad((n % 16)::VARCHAR, 4, '0') AS _part FROM range($rows) AS r(n)""",
}


def measure(asked: Asked) -> list[Figure]:
    jobs = asked.of_jobs(ROWS)
    return [one for job in jobs for one in attempted(f"growth, {job}", partial(_compared, asked, job))]


def _compared(asked: Asked, job: str) -> list[Figure]:
    of = f"growth, {job}"
    small, large = (_batch_seconds(asked, job, ROWS[job] * times) for times in (1, LARGER))
    return [
        Figure(of, f"a batch, table of {ROWS[job]:,} rows", small * 1000, "ms"),
        Figure(of, f"a batch, table of {ROWS[job] * LARGER:,} rows", large * 1000, "ms"),
        Figure(of, "large / small", large / small, "", at_most=1.5),
    ]


def _batch_seconds(asked: Asked, name: str, rows: int) -> float:
    asked.say(f"{name}: a table of {rows:,} rows")
    warm, measured = (8, 12) if asked.quick else (10, 20)
    with ExitStack() as held:
        ours = held.enter_context(platform(asked.work / f"{name}-{rows}"))
        job = load_job(name, ours.settings.root)
        _give_a_past(ours.settings, job, rows)
        live = held.enter_context(driver(ours, name))
        held.enter_context(sender(ours, name, RATE[name]))
        await_first_batch(ours, [live])
        time.sleep(warm)  # not a wait for a condition: the length of the warm-up
        since = datetime.now(UTC)
        time.sleep(measured)
        return _median(ours, live.release, since)


def _median(ours: Platform, release: ReleaseId, since: datetime) -> float:
    found = [one.batch_seconds for one in progress.recent(ours.store, release, since) if one.records_in]
    if not found:
        raise RuntimeError(f"{release} committed no batch with records.")
    return median(found)


def _give_a_past(settings: Settings, job: StreamingJob, rows: int) -> None:
    """Written as another writer's, so that the release takes its own checkpoint for whole."""
    place = settings.storage.table(ReleaseId(job.name, 1)).uri
    Path(place).mkdir(parents=True)
    output = TableWriter(Place(place), table_schema(job.output), "past", job.output.key, job.output.description)
    values = {"rows": rows, "now": int(time.time()) - 60, "tickers": list(TICKERS)}
    query = HISTORY[job.name]
    with duckdb.connect() as duck:
        given = {name: value for name, value in values.items() if f"${name}" in query}
        output.write(duck.sql(query, params=given).to_arrow_table(), 0, "{}")
