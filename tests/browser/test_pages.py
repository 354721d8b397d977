"""What a person sees and does in Dagster's pages. Each wait allows for a busy machine; none is a fixed pause."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from analytics.daily_prices.table import daily_prices
from platform_core.control import leases, services, wanted
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.services.process import until
from platform_core.settings import Settings
from tests.browser.browser import Page
from tests.conftest import Broker

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(900)]

MINUTES = 300.0  # a run starts a Python and loads the location: 10 s alone, minutes beside a busy test run


def test_the_lineage_shows_every_group(page: Page) -> None:
    page.open("/asset-groups")
    page.wait_for("sources", "stock_stats", "word_count", "clickstream", "analytics", seconds=MINUTES)


def test_a_table_shows_its_columns_and_its_key(page: Page) -> None:
    page.open("/assets/tables/stock_stats?view=overview")
    page.wait_for("window_start", "decimal(18,6)", "key", "the lowest ask", seconds=MINUTES)


def test_a_missing_supervisor_shows_on_every_live_release(page: Page, site: Settings) -> None:
    _unsupervised(site)
    page.open("/assets/releases/word_count_live?view=checks&checkDetail=supervised")
    page.wait_for("driver_alive", "lag_bounded", "rejects_bounded", "accounted", "supervised", seconds=MINUTES)
    page.wait_for("The supervisor has never been heard of", seconds=MINUTES)


def test_steering_fails_loudly_when_nothing_supervises(page: Page, site: Settings) -> None:
    _unsupervised(site)
    _launch(page, "start", "word_count")
    page.wait_for("RUN_FAILURE", "Nothing was changed", seconds=MINUTES)


def test_a_stream_is_started_from_the_dropdown(page: Page, site: Settings) -> None:
    store = ControlStore.open(site)
    services.beat(store, leases.SUPERVISOR, {})
    _launch(page, "start", "word_count")
    deadline = time.monotonic() + MINUTES
    while (asked := wanted.of(store, ReleaseId("word_count", 1))) is None:
        assert time.monotonic() < deadline, page.text()
        services.beat(store, leases.SUPERVISOR, {})  # nobody carries it out here; the job asks for no more
    store.close()
    assert (asked.state, asked.by.split()[0]) == ("run", "someone")
    page.wait_for("RUN_SUCCESS", seconds=MINUTES)


def test_a_day_is_materialized_from_the_page(page: Page, site: Settings, broker: Broker) -> None:
    topic = daily_prices.input.topic
    if topic.name not in broker.admin.list_topics(timeout=10).topics:
        broker.create(topic.name, topic.partitions)
    trade = {"type": "ASK", "ticker": "MMM", "price": 10.5, "size": 1}
    broker.produce(topic.name, (b"MMM", json.dumps(trade).encode()))
    page.open("/assets/tables/daily_prices?view=partitions")
    page.wait_for("Materialize…", "Latest", seconds=MINUTES)
    page.click("Materialize…")
    page.wait_for("Launch runs to materialize", "Launch backfill")
    page.click("Latest")
    page.wait_for("Launch 1 run")
    page.click("Launch 1 run")
    page.wait_for("Materialized (1)", seconds=2 * MINUTES)
    rows = site.storage.daily(daily_prices.name).table().to_pyarrow_table().to_pylist()
    assert "MMM" in {row["ticker"] for row in rows}


def _launch(page: Page, job: str, stream: str) -> None:
    page.open(f"/locations/weir/jobs/{job}/playground")
    page.wait_for("Launch Run", seconds=MINUTES)
    _choose(page, stream)
    _click_launch(page)


def _choose(page: Page, stream: str) -> None:
    """A click while the list is still drawn chooses nothing."""
    deadline = time.monotonic() + MINUTES
    while f"partition: {stream}" not in page.text():
        assert time.monotonic() < deadline, page.text()
        _open_dropdown(page, stream)
        page.click(stream)
        with suppress(AssertionError):
            page.wait_for(f"partition: {stream}", seconds=10)


def _click_launch(page: Page) -> None:
    """A click while the page still checks the configuration launches nothing; one that does leads to the run."""
    deadline = time.monotonic() + MINUTES
    while not _on_a_run(page):
        assert time.monotonic() < deadline, page.text()
        if "Launch Run" in page.text():
            page.click("Launch Run")
        until(lambda: _on_a_run(page), 10)


def _on_a_run(page: Page) -> bool:
    return str(page.run("location.pathname")).startswith("/runs/")


def _unsupervised(site: Settings) -> None:
    store = ControlStore.open(site)
    with store.transaction() as cursor:
        cursor.execute("delete from weir.services")
    store.close()


def _open_dropdown(page: Page, stream: str) -> None:
    """A click before the field has its partitions opens nothing, so it is clicked until the list is there."""
    deadline = time.monotonic() + MINUTES
    while stream not in page.text():
        assert time.monotonic() < deadline, page.text()
        page.click("Partition")
        with suppress(AssertionError):
            page.wait_for(stream, seconds=5)
