"""Jobs with state functions of their own, live: from an archive, in Python workers, over kills, and as one batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from platform_core.control import releases, wanted
from platform_core.names import ReleaseId
from platform_core.release.plan.tree import tree_of
from platform_core.release.plan.trial import sides
from platform_core.testing.oracle import Closing, Oracle
from tests.conftest import Broker
from tests.stack.landing import at_end
from tests.stack.running import Platform, a_home, job_in, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(600)]
PREFIX = "state"
HEALTH, BEACONING = ReleaseId("machine_health", 1), ReleaseId("beaconing", 1)
TOPICS = {HEALTH: f"{PREFIX}-machine.readings", BEACONING: f"{PREFIX}-connections"}
HALF, RECORDS = 20 * 3600, 1500  # seconds of event time, and their records
FAULTS = ["--duplicated", "0.02", "--malformed", "0.01"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers) as running:
        for release in running.freeze(HEALTH.job, BEACONING.job):
            wanted.want(running.store, release, "run", "a test")
        yield running


def generate(platform: Platform, began: float) -> None:
    options = ["--rate", str(RECORDS / HALF), "--records", str(RECORDS), "--start-ms", str(int(began * 1000)), *FAULTS]
    for kind in ("machines", "connections"):
        assert platform.generate(kind, *options).exit_code() == 0


def test_rows_are_those_of_one_batch_whatever_was_killed(platform: Platform, spark: SparkSession) -> None:
    began = time.time() - 2 * HALF
    generate(platform, began)
    platform.supervise()
    until(lambda: all(at_end(platform, one, [topic]) for one, topic in TOPICS.items()), "the first half is read")
    for release in TOPICS:
        platform.kill_driver(release)
    generate(platform, began + HALF)
    until(lambda: all(at_end(platform, one, [topic]) for one, topic in TOPICS.items()), "the second half is read")
    for release in TOPICS:
        job = job_in(platform.settings.storage.archive(release) / "code", release.job)
        assert Oracle(spark, platform.settings, job, release, Closing("raised_at")).table() == []
        assert DeltaTable(platform.settings.storage.table(release).uri).to_pyarrow_table().num_rows > 0
        log = (platform.settings.storage.logs / f"driver-{release.group}.log").read_text()
        assert "doesn't contain a value" not in log


def test_a_plan_runs_both_transforms_over_the_last_records(platform: Platform) -> None:
    """As one batch, in sessions that run no stream."""
    live = releases.get(platform.store, HEALTH)
    with sides(platform.settings, live) as both:
        found = both.run(tree_of(platform.settings, HEALTH.job), timedelta(hours=24))()
    assert found.comparison.rows_left > 0
    assert found.comparison.same
