"""A profile that starts nothing itself: an existing broker and Postgres, and a Spark cluster; the same three jobs.

The tests share one platform and follow each other: what one leaves behind is where the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from platform_core.control import drivers, wanted
from platform_core.control.owners import Owner
from platform_core.names import PART, ReleaseId
from platform_core.read import get, open_tables, sql
from platform_core.services import ports
from platform_core.services import postgres as postgres_service
from platform_core.services.roster import managed
from platform_core.settings import Settings
from platform_core.settings import load as load_settings
from platform_core.testing.oracle import Oracle
from tests.conftest import Broker, Database
from tests.stack.cluster import Cluster, a_cluster
from tests.stack.jobs import JOBS, load, oracles
from tests.stack.running import Platform, a_platform, tree_of_its_own, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
PREFIX = "apart"
PROFILE = """
[kafka]
managed = false
bootstrap = "{broker}"
[postgres]
managed = false
port = {database}
password_file = "{password}"
database = "apart"
[dagster]
managed = false
[spark]
master = "spark://127.0.0.1:{master}"
[spark.conf]
"spark.cores.max" = "1"
"spark.executor.memory" = "600m"
"spark.executor.extraJavaOptions" = "-XX:+UseSerialGC"
"""


@pytest.fixture(scope="module")
def settings(broker: Broker, postgres: Database, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("cluster-profile")
    profile = PROFILE.format(
        broker=broker.servers,
        database=postgres.settings.postgres.port,
        password=postgres.settings.home / "postgres.password",
        master=ports.free(1)[0],
    )
    (folder / "apart.toml").write_text(profile)
    found = load_settings(str(folder / "apart.toml"), environment={"WEIR_HOME": str(folder / "home")})
    postgres_service.server(found).settle()  # somebody made the database
    return found.model_copy(update={"root": tree_of_its_own(folder / "tree", PREFIX)})


@pytest.fixture(scope="module")
def platform(settings: Settings) -> Iterator[Platform]:
    settings.home.mkdir(parents=True)
    with a_platform(settings) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(platform: Platform) -> Cluster:
    master = int(platform.settings.spark.master.rpartition(":")[2])
    return a_cluster(platform, master, ports.free(1)[0], workers=2)


@pytest.fixture(scope="module")
def streams(platform: Platform, cluster: Cluster) -> list[ReleaseId]:
    """All three at work, under load."""
    assert cluster.alive() == 2
    frozen = platform.freeze(*JOBS)
    for release in frozen:
        wanted.want(platform.store, release, "run", "a test")
    platform.supervise()
    load(platform)
    platform.works(*frozen)
    return frozen


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, platform: Platform, streams: list[ReleaseId]) -> dict[ReleaseId, Oracle]:
    return oracles(spark, platform, streams)


@pytest.fixture(scope="module")
def stopped(platform: Platform, streams: list[ReleaseId]) -> list[ReleaseId]:
    """The streams after the supervisor was asked to end."""
    supervisor = platform.service("supervisor")
    assert supervisor.end() == 0
    return streams


def at_work(platform: Platform, release: ReleaseId) -> Owner:
    """The process that runs it."""
    until(lambda: _running(platform, release) is not None, f"{release} runs")
    owner = _running(platform, release)
    assert owner is not None
    return owner


def _running(platform: Platform, release: ReleaseId) -> Owner | None:
    told = drivers.get(platform.store, release)
    return told.owner if told and told.state == "running" and told.owner and told.owner.running else None


def test_the_profile_starts_nothing_but_the_supervisor(settings: Settings) -> None:
    assert [service.name for service in managed(settings)] == ["supervisor"]


def test_a_supervisor_that_was_killed_finds_its_drivers_at_work(platform: Platform, streams: list[ReleaseId]) -> None:
    before = {release: at_work(platform, release) for release in streams}
    platform.service("supervisor").kill_all()
    successor = platform.supervise()
    until(lambda: successor.events("supervisor leads"), "another supervisor leads", about=successor.log)
    platform.works(*streams)
    assert {release: at_work(platform, release) for release in streams} == before


def test_streams_go_on_after_a_worker_was_killed(
    platform: Platform, cluster: Cluster, streams: list[ReleaseId]
) -> None:
    cluster.workers[0].kill_all()
    platform.works(*streams, batches=3)
    until(lambda: cluster.alive() == 1, "the master misses it")


def test_a_paused_stream_stands_still_and_goes_on_where_it_was(platform: Platform, streams: list[ReleaseId]) -> None:
    words = _of("word_count", streams)
    process = at_work(platform, words)
    wanted.want(platform.store, words, "pause", "a test")
    until(lambda: not process.running, "its driver ends")
    assert platform.checkpoint(words).done == platform.batch(words)
    wanted.want(platform.store, words, "run", "a test")
    platform.works(words)
    assert at_work(platform, words) != process


def test_a_restarted_stream_has_another_process(platform: Platform, streams: list[ReleaseId]) -> None:
    words = _of("word_count", streams)
    process = at_work(platform, words)
    wanted.restart(platform.store, words, "a test")
    until(lambda: not process.running, "the former driver ends")
    platform.works(words)
    assert at_work(platform, words) != process


def test_streams_asked_to_end_have_finished_their_batches_and_lost_nothing(
    platform: Platform, stopped: list[ReleaseId], oracle: dict[ReleaseId, Oracle]
) -> None:
    for release in stopped:
        assert platform.checkpoint(release).done == platform.batch(release)
    assert {release.job: one.table() for release, one in oracle.items()} == {job: [] for job in JOBS}
    assert {release.job: one.topic() for release, one in oracle.items()} == {job: [] for job in JOBS}
    assert {release.job: one.rejects() for release, one in oracle.items()} == {job: [] for job in JOBS}


def test_the_consumer_group_stands_where_the_table_does(
    platform: Platform, broker: Broker, stopped: list[ReleaseId]
) -> None:
    for release in stopped:
        position = platform.position(release)
        assert position is not None
        there = _group(broker, release.group)  # homes of other tests have groups of the same name on this broker
        assert {t: there.get(t) for t in position.offsets} == {t: dict(parts) for t, parts in position.offsets.items()}


def test_readers_get_what_the_table_holds(platform: Platform, stopped: list[ReleaseId]) -> None:
    tables = open_tables(platform.settings)
    assert {"stock_stats", "user_activity", "word_count", "stock_stats_rejects"} <= set(tables)
    for release, name in zip(stopped, ("stock_stats", "user_activity", "word_count"), strict=True):
        there = DeltaTable(platform.settings.storage.table(release).uri).to_pyarrow_table().drop_columns([PART])
        assert _rows(tables.table(name).arrow()) == _rows(there)
    (count,) = sql(platform.settings, "select count(*) as n from stock_stats").records()
    assert count["n"] == tables.table("stock_stats").arrow().num_rows
    row = tables.table("word_count").arrow().to_pylist()[0]
    assert get(platform.settings, "word_count", [row["word"]]).records() == [row]


def _of(job: str, streams: list[ReleaseId]) -> ReleaseId:
    return next(release for release in streams if release.job == job)


def _rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


def _group(broker: Broker, name: str) -> dict[str, dict[int, int]]:
    asked = broker.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
    found: dict[str, dict[int, int]] = {}
    for part in asked[name].result(30).topic_partitions:
        found.setdefault(part.topic, {})[part.partition] = part.offset
    return found
