"""Two of the examples under load, with bad records and drivers killed: tables, topics and rejects are exact."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from platform_core.broker import Broker as Asked
from platform_core.control import wanted
from platform_core.names import ReleaseId
from platform_core.testing.oracle import Oracle
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, job_in, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(900)]
PREFIX = "patterns"
LOAD = {
    "log_router": ("logs", "--rate", "200", "--malformed", "0.005", "--duplicated", "0.01"),
    "device_uptime": ("heartbeats", "--rate", "200", "--malformed", "0.005", "--duplicated", "0.01"),
}


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers) as running:
        yield running


def has_read_all(platform: Platform, release: ReleaseId) -> bool:
    position = platform.position(release)
    return position is not None and position.offsets == Asked(platform.settings).ends(position.offsets)


def test_after_load_and_a_kill_every_record_is_in_its_place(platform: Platform, spark: SparkSession) -> None:
    releases = platform.freeze(*LOAD)
    for release in releases:
        wanted.want(platform.store, release, "run", "a test")
    generators = [platform.generate(*load) for load in LOAD.values()]
    platform.supervise()
    platform.works(*releases, batches=5)
    for release in releases:
        platform.kill_driver(release)
    platform.works(*releases, batches=5)
    for one in generators:
        assert one.end() == 0
    for release in releases:
        until(lambda of=release: has_read_all(platform, of), f"{release} has read all")
        job = job_in(platform.settings.storage.archive(release) / "code", release.job)
        oracle = Oracle(spark, platform.settings, job, release)
        assert oracle.table() == []
        assert oracle.rejects() == []
        until(lambda of=oracle: of.topic() == [], f"the topics of {release} are as its table")
