"""A release is replayed from a topic whose older records the broker has no more: they come from its raw table."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from deltalake import DeltaTable

from platform_core.control import leases, releases, wanted
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.plan.plan import plan_of
from tests.conftest import Broker
from tests.stack.landing import at_end, batches, ends, truncate
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(900)]
PREFIX, JOB = "history", "stock_stats"
TOPIC = f"{PREFIX}-stocks"
V1, V2, RAW = ReleaseId(JOB, 1), ReleaseId(JOB, 2), ReleaseId("stocks_raw", 1)
LOAD = ["--rate", "400", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    more = {
        "WEIR_MOVES__FOLLOW_SECONDS": "3",
        "WEIR_MOVES__REPLAY_RECORDS": "3000",
    }
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        for release in running.freeze(JOB, "stocks_raw"):
            wanted.want(running.store, release, "run", "a test")
        running.generate("stocks", *LOAD, "--records", "20000", "--start-ms", str(int(time.time() * 1000) - 120_000))
        running.supervise()
        assert running.service("generator-stocks").exit_code() == 0
        until(lambda: all(at_end(running, one, [TOPIC]) for one in (V1, RAW)), "both have read all")
        yield running


def test_a_raw_table_has_every_record_once_also_the_malformed(platform: Platform, broker: Broker) -> None:
    rows = DeltaTable(platform.settings.storage.table(RAW).uri).to_pyarrow_table()
    read = ends(platform, [TOPIC])[TOPIC]
    there = sorted(zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True))
    assert there == [(partition, offset) for partition, end in sorted(read.items()) for offset in range(end)]
    landed = {(row["offset"], row["key"], row["value"]) for row in rows.to_pylist() if row["partition"] == 0}
    assert {(one.offset(), one.key(), one.value()) for one in broker.consume(TOPIC, 500)} <= landed


def test_a_replay_begins_in_the_table_survives_a_kill_there_and_goes_on_at_the_broker(
    platform: Platform, broker: Broker
) -> None:
    halves = truncate(broker, platform, TOPIC)
    job = platform.settings.root / "streaming_jobs" / JOB / "job.py"
    job.write_text(job.read_text().replace('F.min("price")', 'F.min(F.col("price"))'))
    found = plan_of(JOB, platform.settings, platform.store)
    assert (
        f"topic {TOPIC!r}: the oldest {sum(halves.values()):,} records come from the raw table of {RAW}" in found.notes
    )
    release_candidate(JOB, platform.settings, platform.store, "a test", CandidateOptions(again=True))
    until(lambda: bool(batches(platform, V2)), "a batch of the replay")
    platform.kill_driver(V2)
    killed = batches(platform, V2)[-1][TOPIC]
    assert all(killed[partition] < half for partition, half in halves.items()), "it no longer read the table"
    until(lambda: releases.get(platform.store, V2).state == "following", "the replay reaches the live release")
    first = batches(platform, V2)[0][TOPIC]
    assert all(first[partition] < half for partition, half in halves.items())
    log = (platform.settings.storage.logs / f"driver-{V2.group}.log").read_text()
    assert log.count("history comes from raw tables") == 2, "before and after the kill"
    assert log.rindex("history comes from raw tables") < log.index("history comes from the broker")


def test_a_follower_that_slept_through_retention_reads_the_table_too(platform: Platform, broker: Broker) -> None:
    until(lambda: at_end(platform, V2, [TOPIC]), "the follower has read all")
    slept = platform.position(V2)
    assert slept is not None
    wanted.want(platform.store, V2, "stop", "a test")
    until(lambda: not _held(platform), "it sleeps")
    platform.generate("stocks", *LOAD, "--records", "8000")
    assert platform.service("generator-stocks").exit_code() == 0
    until(lambda: all(at_end(platform, one, [TOPIC]) for one in (V1, RAW)), "both have read all")
    lost = truncate(broker, platform, TOPIC, slept.offsets[TOPIC])
    assert all(first > slept.offsets[TOPIC][partition] for partition, first in lost.items())
    wanted.want(platform.store, V2, "run", "a test")
    until(lambda: at_end(platform, V2, [TOPIC]), "the follower has read all")
    assert releases.get(platform.store, V2).state == "following"
    log = (platform.settings.storage.logs / f"driver-{V2.group}.log").read_text()
    assert log.count("history comes from raw tables") == 3


def _held(platform: Platform) -> bool:
    lease = leases.current(platform.store, leases.driver_lease(V2))
    return lease is not None and lease.alive


def test_the_rows_are_those_of_the_release_that_read_the_broker(platform: Platform) -> None:
    outcome = compare(Caller(platform.settings, platform.store, "a test"), JOB)
    assert outcome.verdict.passed, outcome.verdict.reasons
    assert outcome.found.rows_left > 100
