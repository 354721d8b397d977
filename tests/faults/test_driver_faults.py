"""One driver under load, hurt in one way after another; then its table, topic and rejects are recomputed.

The tests share one release and follow each other: what one leaves behind is where the next begins. The oracle
computes all from offset 0: before the first fault, after the kills between two commits, and at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from platform_core.control import leases, positions
from platform_core.names import ReleaseId
from platform_core.services import postgres
from platform_core.testing.oracle import Closing, Oracle
from tests.conftest import Broker
from tests.faults.dying import BEFORE_CHECKPOINT, BEFORE_PUBLISH, BEFORE_TABLE
from tests.faults.words import dies, epoch, now_ms, reasons, refused, remove_unused, repeats, said, trade
from tests.stack.running import Platform, Running, a_home, job_in, until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
PREFIX = "driver-faults"
TRADES = f"{PREFIX}-stocks"
LOAD = ["--rate", "100", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005", "--far-future", "0.002"]
TRY_AGAIN, SUPERSEDED, TOO_MANY_REJECTS = 75, 70, 65


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    more = {
        "WEIR_SUPERVISION__LEASE_SECONDS": "6",
        "WEIR_BATCHES__MAX_RECORDS": "1000",  # so that a slow machine, too, has late records across batches
    }
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        yield running


@pytest.fixture(scope="module")
def release(platform: Platform) -> ReleaseId:
    (frozen,) = platform.freeze("stock_stats")
    platform.generate("stocks", *LOAD)
    return frozen


@pytest.fixture(scope="module")
def oracle(spark: SparkSession, platform: Platform, release: ReleaseId) -> Oracle:
    job = job_in(platform.settings.storage.archive(release) / "code", "stock_stats")
    return Oracle(spark, platform.settings, job, release, Closing("window_end", "5 seconds"))


@pytest.fixture
def lone(platform: Platform, release: ReleaseId) -> None:
    """Nothing drives the release when the test begins."""
    row = leases.current(platform.store, leases.driver_lease(release))
    assert row is None or not row.owner.running


def test_a_driver_asked_to_end_finishes_its_batch(platform: Platform, release: ReleaseId, oracle: Oracle) -> None:
    driver = platform.drive(release)
    platform.works(release, batches=4, running=driver)
    assert driver.end() == 0
    assert not any(repeats(driver))
    assert platform.checkpoint(release).done == platform.batch(release)
    assert oracle.table() == []
    assert oracle.topic() == []
    assert said(platform, release).state == "stopped"


@pytest.mark.usefixtures("lone")
def test_a_torn_offsets_file_is_refused_by_name(platform: Platform, release: ReleaseId) -> None:
    newest = platform.checkpoint(release).path / "offsets" / str(platform.checkpoint(release).planned)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    try:
        reason = refused(platform, release)
    finally:
        newest.write_bytes(whole)
    assert f"{newest}: not a readable offsets file" in reason
    assert "Restore it from a copy of the checkpoint" in reason


@pytest.mark.usefixtures("lone")
def test_a_missing_offsets_file_with_its_commit_there_is_refused(platform: Platform, release: ReleaseId) -> None:
    checkpoint = platform.checkpoint(release)
    done = checkpoint.done
    newest = [checkpoint.path / "offsets" / str(batch) for batch in checkpoint.batches("offsets") if batch >= done]
    aside = [(path, path.rename(checkpoint.path.parent / path.name)) for path in newest]
    try:
        reason = refused(platform, release)
    finally:
        for path, kept in aside:
            kept.rename(path)
    assert f"has commits/{done} but no offsets/{done}" in reason


@pytest.mark.usefixtures("lone")
def test_a_deleted_checkpoint_is_refused(platform: Platform, release: ReleaseId) -> None:
    checkpoint, batch = platform.checkpoint(release).path, platform.batch(release)
    aside = checkpoint.rename(checkpoint.with_name("aside"))
    try:
        reason = refused(platform, release)
    finally:
        remove_unused(checkpoint)
        aside.rename(checkpoint)
    table = platform.settings.storage.table(release)
    assert f"has no offsets, but table {table} holds batch {batch} up to" in reason
    assert f"{TRADES}[0]@" in reason


@pytest.mark.usefixtures("lone")
def test_a_removed_commit_file_repeats_one_batch_without_effect(platform: Platform, release: ReleaseId) -> None:
    checkpoint = platform.checkpoint(release)
    last = checkpoint.done
    (checkpoint.path / "commits" / str(last)).unlink()
    (checkpoint.path / "offsets" / str(last + 1)).unlink(missing_ok=True)  # planned, and refused by the gate
    driver = dies(platform, release, BEFORE_PUBLISH)
    first, *others = driver.events("batch committed")
    assert (first["batch"], first["repeated"]) == (last, True)
    assert not any(one["repeated"] for one in others)
    assert platform.batch(release) == checkpoint.done + 1 == last + 2  # where the next test begins


@pytest.mark.usefixtures("lone")
def test_a_driver_killed_between_table_and_topic_publishes_what_the_table_has(
    platform: Platform, release: ReleaseId
) -> None:
    driver = dies(platform, release, BEFORE_CHECKPOINT)
    assert repeats(driver)[0]
    assert platform.batch(release) == platform.checkpoint(release).done + 1


@pytest.mark.usefixtures("lone")
def test_a_driver_killed_between_its_commits_and_the_checkpoints_writes_nothing_twice(
    platform: Platform, release: ReleaseId, oracle: Oracle
) -> None:
    driver = dies(platform, release, BEFORE_TABLE)
    assert repeats(driver)[0]
    assert platform.batch(release) == platform.checkpoint(release).done
    assert platform.checkpoint(release).planned == platform.checkpoint(release).done + 1
    assert oracle.table() == []
    assert oracle.topic() == []


@pytest.mark.usefixtures("lone")
def test_commits_that_a_driver_did_not_live_to_record_are_told_by_the_next(
    platform: Platform, release: ReleaseId
) -> None:
    driver = platform.drive(release)
    platform.works(release, running=driver)
    platform.service("postgres").kill_all()
    kept, paused = "position kept until the control store is back", "paused: the lease could not be renewed"
    # of the last one kept the checkpoint may not know yet, unless no other can follow: it would be repeated
    until(lambda: len(driver.events(kept)) > 1 or driver.events(paused), "it goes on", about=driver.log)
    driver.kill_all()
    platform.serve(postgres.server(platform.settings))
    following = platform.drive(release)
    platform.works(release, running=following)
    assert following.end() == 0
    assert following.events("unrecorded commits told")
    told = [one.position.batch for one in positions.history(platform.store, release, 10_000)]
    assert told == list(range(platform.batch(release), -1, -1))


@pytest.mark.usefixtures("lone")
def test_a_driver_killed_amid_a_batch_leaves_it_to_the_next_one(
    platform: Platform, release: ReleaseId, running: Running
) -> None:
    platform.works(release, running=running)
    assert not any(repeats(running))


@pytest.fixture(scope="module")
def running(platform: Platform, release: ReleaseId) -> Running:
    """The driver of the tests that need one at work."""
    return platform.drive(release)


def test_a_second_driver_stops_before_it_writes(platform: Platform, release: ReleaseId, running: Running) -> None:
    before = epoch(platform, release)
    second = platform.drive(release)
    assert second.exit_code() == TRY_AGAIN
    assert second.events("batch committed") == []
    assert f"held by process {running.child.pid}" in second.events("driver ended")[0]["error"]["what"]
    assert epoch(platform, release) == before
    platform.works(release, running=running)


@pytest.fixture(scope="module")
def successor(platform: Platform, release: ReleaseId, running: Running) -> Running:
    """Takes over from a driver that was frozen and has lost its lease meanwhile."""
    running.freeze()
    taking_over = platform.drive(release)
    platform.works(release, running=taking_over)
    return taking_over


def test_a_driver_frozen_beyond_its_lease_writes_nothing_when_it_wakes(
    platform: Platform, release: ReleaseId, running: Running, successor: Running
) -> None:
    batches = len(running.events("batch committed"))
    running.thaw()
    assert running.exit_code() == SUPERSEDED
    assert running.events("driver ended")[0]["error"]["error"] == "Superseded"
    told = running.events("batch committed")[batches:]  # one that it had committed before it was frozen
    assert all(one["version"] <= successor.events("batch committed")[0]["version"] for one in told)
    assert said(platform, release).pid == successor.child.pid
    platform.works(release, running=successor)


def test_a_driver_without_its_control_store_pauses_and_resumes_by_itself(
    platform: Platform, release: ReleaseId, successor: Running
) -> None:
    platform.service("postgres").kill_all()
    until(lambda: successor.events("paused: the lease could not be renewed"), "it pauses", about=successor.log)
    platform.serve(postgres.server(platform.settings))
    until(lambda: successor.events("resumed: the lease holds again"), "it resumes", about=successor.log)
    happened = [one["event"] for one in successor.events()]
    paused = happened.index("paused: the lease could not be renewed")
    assert "batch committed" not in happened[paused : happened.index("resumed: the lease holds again")]
    platform.works(release, running=successor)


def test_poison_becomes_rejects_and_the_stream_goes_on(
    platform: Platform, release: ReleaseId, broker: Broker, successor: Running
) -> None:
    wrong = {
        b"\xff\xfe\x00": "not UTF-8",
        b"{": "not JSON",
        b"": "empty value",
        trade(price="dear"): "not JSON",
        trade(ticker=None): "missing field: ticker",
        trade(ticker=""): "rule ticker is given",
        trade(price=-1): "rule price is positive",
        b" " * 200_000: "not JSON",
    }
    broker.produce(TRADES, *((b"MMM", value) for value in wrong), (None, trade()), (b"MMM", None), at=now_ms())
    due = [*wrong.values(), "null key", "empty value"]
    uri = platform.settings.storage.rejects("stock_stats").uri
    until(lambda: all(any(reason in one for one in reasons(uri)) for reason in due), "all are rejected")
    platform.works(release, running=successor)


def test_a_record_dated_years_ahead_does_not_move_the_watermark(platform: Platform, release: ReleaseId) -> None:
    rejects = platform.settings.storage.rejects("stock_stats").uri
    ahead = [one for one in reasons(rejects) if "more than 1 day ahead" in one]
    position = platform.position(release)
    assert ahead
    assert position is not None
    assert position.watermark_ms < now_ms()


def test_more_rejects_than_the_limit_stop_the_job(
    platform: Platform, release: ReleaseId, broker: Broker, successor: Running, oracle: Oracle
) -> None:
    broker.produce(TRADES, *((b"MMM", b"{") for _ in range(10_000)), at=now_ms())
    assert successor.exit_code() == TOO_MANY_REJECTS
    told = said(platform, release)
    assert told.permanent
    assert told.reason.startswith(f"stock_stats v1 stopped at {TRADES}[")
    assert "limit 50%. Fix the producer or raise reject_limit" in told.reason
    assert oracle.table() == []
    assert oracle.topic() == []
    assert oracle.rejects() == []


def test_the_oracle_sees_a_lost_row_a_doubled_one_and_a_changed_one(
    platform: Platform, release: ReleaseId, oracle: Oracle
) -> None:
    table = DeltaTable(platform.settings.storage.table(release).uri)
    _lost, doubled, changed, *others = table.to_pyarrow_table().to_pylist()
    spoilt = [doubled, doubled, changed | {"trade_count": 1_000_000}, *others]
    schema = table.to_pyarrow_table().schema
    write_deltalake(table, pa.Table.from_pylist(spoilt, schema=schema), mode="overwrite")
    told = oracle.table()
    assert [difference.partition(", as")[0] for difference in told] == [
        *["not in the batch: 2 rows"] * 2,
        *["not in the table: 2 rows"] * 2,
    ]
