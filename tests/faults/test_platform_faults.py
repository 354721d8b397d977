"""The three jobs under one supervisor and under load, while the services beneath them die.

The tests share one platform and follow each other: what one leaves behind is where the next begins. The oracle
computes all from offset 0: once before the first fault, once after the last.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from platform_core.control import aliases, leases, releases, wanted
from platform_core.names import ReleaseId
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.services import kafka, ports, postgres
from platform_core.settings import load as load_settings
from platform_core.testing.oracle import Oracle
from tests.stack.jobs import JOBS, load, oracles
from tests.stack.running import Platform, Running, a_platform, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]

# Shorter than Kafka's own half minutes, so that a broker frozen for a third of a minute runs into all of them.
FROZEN_SECONDS = 20
PROFILE = """
[kafka.client]
"socket.timeout.ms" = "6000"
[kafka.spark]
"request.timeout.ms" = "6000"
"default.api.timeout.ms" = "8000"
[supervision]
lease_seconds = 8
backoff_seconds = 1
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("platform-faults")
    (folder / "hurt.toml").write_text(PROFILE)
    broker, _, database = (str(port) for port in ports.free(3))
    where = {"WEIR_HOME": str(folder / "home"), "WEIR_KAFKA__PORT": broker, "WEIR_POSTGRES__PORT": database}
    settings = load_settings(str(folder / "hurt.toml"), environment=where)
    with a_platform(settings, own=[postgres.server, kafka.broker]) as running:
        yield running


@pytest.fixture(scope="module")
def streams(platform: Platform) -> list[ReleaseId]:
    """All three at work, under load."""
    frozen = platform.freeze(*JOBS)
    for release in frozen:
        wanted.want(platform.store, release, "run", "a test")
    platform.supervise()
    generators = load(platform)
    platform.works(*frozen)
    assert all(one.alive for one in generators)
    return frozen


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, platform: Platform, streams: list[ReleaseId]) -> dict[ReleaseId, Oracle]:
    return oracles(spark, platform, streams)


def generators(platform: Platform) -> list[Running]:
    return [platform.service(f"generator-{kind}") for kind in ("stocks", "clicks", "lines")]


def differences(oracle: dict[ReleaseId, Oracle]) -> dict[str, list[str]]:
    return {str(release): one.table() for release, one in oracle.items()}


def nothing(streams: list[ReleaseId]) -> dict[str, list[str]]:
    return {str(release): [] for release in streams}


def test_three_jobs_write_what_a_batch_computes(streams: list[ReleaseId], oracle: dict[ReleaseId, Oracle]) -> None:
    assert differences(oracle) == nothing(streams)


def test_streams_outlive_a_killed_broker(platform: Platform, streams: list[ReleaseId]) -> None:
    platform.service("kafka").kill_all()
    platform.serve(kafka.broker(platform.settings))
    platform.works(*streams, batches=3)
    assert all(one.alive for one in generators(platform))


def test_streams_outlive_a_frozen_broker(platform: Platform, streams: list[ReleaseId]) -> None:
    broker = platform.service("kafka")
    noticed = {release: _complaints(platform, release) for release in streams}
    broker.freeze()
    frozen = time.monotonic()
    try:
        until(lambda: time.monotonic() - frozen >= FROZEN_SECONDS, "as long as the fault is to last")
        for release, before in noticed.items():
            until(lambda r=release, b=before: _complaints(platform, r) > b, f"{release} notices that nobody answers")
    finally:
        broker.thaw()
    platform.works(*streams, batches=3)


def test_a_supervisor_that_slept_through_its_lease_wakes_up_and_leaves_the_drivers_to_its_successor(
    platform: Platform, streams: list[ReleaseId]
) -> None:
    sleeper, drivers = platform.service("supervisor"), _drivers(platform, streams)
    os.kill(sleeper.child.pid, signal.SIGSTOP)
    successor = platform.supervise()
    until(lambda: _leader(platform) == successor.child.pid, "another one leads", about=successor.log)
    os.kill(sleeper.child.pid, signal.SIGCONT)
    until(lambda: '"error":"Superseded"' in sleeper.log.read_text(), "the sleeper learns of it", about=sleeper.log)
    assert _drivers(platform, streams) == drivers
    platform.works(*streams)
    assert _drivers(platform, streams) == drivers
    sleeper.kill()


def test_all_resumes_after_everything_was_killed_at_once(platform: Platform, streams: list[ReleaseId]) -> None:
    """A candidate among them, wherever it is."""
    candidate = release_candidate(
        "word_count", platform.settings, platform.store, "a test", CandidateOptions(again=True)
    ).id
    platform.works(candidate, batches=1)
    before = _states(platform)
    positions = {release: platform.batch(release) for release in streams}
    platform.power_cut(sparing=generators(platform))
    for service in (postgres.server, kafka.broker):
        platform.serve(service(platform.settings))
    platform.supervise()
    platform.works(*streams)
    until(lambda: releases.get(platform.store, candidate).state == "following", "the candidate follows")
    platform.works(candidate)
    assert _states(platform) == before
    assert all(platform.batch(release) > batch for release, batch in positions.items())


def test_after_all_that_tables_topics_and_rejects_hold_every_result_once(
    platform: Platform, streams: list[ReleaseId], oracle: dict[ReleaseId, Oracle]
) -> None:
    supervisor = platform.service("supervisor")
    assert supervisor.end() == 0
    assert differences(oracle) == nothing(streams)
    assert {str(release): one.topic() for release, one in oracle.items()} == nothing(streams)
    assert {str(release): one.rejects() for release, one in oracle.items()} == nothing(streams)


def _complaints(platform: Platform, release: ReleaseId) -> int:
    said = (platform.settings.storage.logs / f"driver-{release.group}.log").read_text(errors="replace")
    return said.count('"ends of topics unknown"') + said.count('"driver ended"')


def _leader(platform: Platform) -> int | None:
    lease = leases.current(platform.store, leases.SUPERVISOR)
    return lease.owner.pid if lease is not None and lease.alive else None


def _drivers(platform: Platform, streams: list[ReleaseId]) -> list[tuple[int, int]]:
    """The process and the epoch that hold each release."""
    held = [leases.current(platform.store, leases.driver_lease(release)) for release in streams]
    return [(one.owner.pid, one.epoch) for one in held if one is not None and one.alive]


def _states(platform: Platform) -> object:
    store = platform.store
    return (
        [(one.id, one.state.replace("replaying", "following"), one.topics) for one in releases.all(store)],
        {release: (one.state, one.generation) for release, one in wanted.all(store).items()},
        {table: (one.release, one.since) for table, one in aliases.all(store).items()},
    )
