"""What is done to a topic while nobody reads it: retention removes records, or the topic itself is made again.

The release stops and says which; it goes on when it is told to.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import DataFrame, SparkSession

from platform_core.broker import Broker as Kafka
from platform_core.control import gaps, wanted
from platform_core.control.gaps import Gap
from platform_core.control.position import Offsets
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.source.kafka_source import records_in
from platform_core.testing import commits
from platform_core.testing.oracle import Closing, Oracle
from tests.conftest import Broker
from tests.faults.words import now_ms, refused
from tests.stack.running import Platform, Running, a_home, job_in, until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]
PREFIX = "topic-faults"
LINES, TRADES = f"{PREFIX}-wordcount-input", f"{PREFIX}-stocks"
LOAD = ["--rate", "200", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers) as running:
        yield running


def reads(platform: Platform, release: ReleaseId, driver: Running, offset: int) -> None:
    def there() -> bool:
        found = platform.position(release)
        return found is not None and found.offsets[LINES][0] == offset

    until(there, f"it has read to {offset}", about=driver.log)


def accepted(platform: Platform, release: ReleaseId) -> str:
    """What the command says; nothing supervises here, which it says, too."""
    told = subprocess.run(
        [sys.executable, "-m", "platform_core.cli", "start", str(release), "--accept-gap"],
        cwd=platform.settings.root,
        env={**platform.settings.child_environment(), "PYTHONPATH": str(platform.settings.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 75, told
    return told.stderr


def stopped(driver: Running) -> None:
    assert driver.end() == 0


def test_a_gap_stops_a_release_until_somebody_accepts_it(platform: Platform, broker: Broker) -> None:
    (release,) = platform.freeze("word_count")
    broker.produce(LINES, *[(None, b"one line")] * 100, at=now_ms())
    driver = platform.drive(release)
    reads(platform, release, driver, 100)
    assert driver.end() == 0
    broker.produce(LINES, *[(None, b"one line")] * 100, at=now_ms())
    broker.admin.delete_records([TopicPartition(LINES, 0, 150)])[TopicPartition(LINES, 0)].result(20)

    lost = f"Retention has removed 50 records that were not read yet: {LINES}[0] 100..149."
    why = refused(platform, release)
    assert lost in why
    assert f"`weir start {release} --accept-gap`" in why
    assert [(one.gap, one.accepted_by) for one in gaps.of(platform.store, release)] == [(Gap(LINES, 0, 100, 149), "")]

    told = accepted(platform, release)
    assert f"goes on without 50 records, {LINES}[0] 100..149" in told
    asked = wanted.of(platform.store, release)
    assert asked is not None
    assert asked.state == "run"
    going_on = platform.drive(release)
    reads(platform, release, going_on, 200)
    assert going_on.end() == 0
    assert sum(one["records"] for one in going_on.events("batch committed")) == 50


def test_a_topic_made_again_under_its_name_is_refused(platform: Platform, broker: Broker) -> None:
    """With more records than the release has read of the old one: by offsets alone they could not be told apart."""
    (release,) = platform.freeze("word_count")
    before = platform.position(release)
    assert before is not None
    broker.delete(LINES)
    until(lambda: LINES not in broker.admin.list_topics(timeout=10).topics, "the topic is gone")
    broker.create(LINES, 4)
    more = before.offsets[LINES][0] + 50
    broker.produce(LINES, *[(None, b"another line")] * more, at=now_ms())
    reason = refused(platform, release)
    assert f"topic {LINES!r} was" in reason
    assert "Make a new release that reads the new topic" in reason


@pytest.mark.long
def test_under_load_nothing_is_missing_but_what_the_gap_names(
    platform: Platform, broker: Broker, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (release,) = platform.freeze("stock_stats")
    platform.generate("stocks", *LOAD)
    driver = platform.drive(release)
    platform.works(release, batches=4, running=driver)
    stopped(driver)
    slept = platform.position(release)
    assert slept is not None
    read, kafka = slept.offsets[TRADES], Kafka(platform.settings)
    until(lambda: all(end > read[p] + 200 for p, end in ends(kafka).items()), "more is sent while nobody reads")
    until_here = ends(kafka)
    copy = records_in(spark, platform.settings, {}, {TRADES: until_here}).localCheckpoint()
    firsts = {partition: (read[partition] + end) // 2 for partition, end in until_here.items()}
    for one in broker.admin.delete_records([TopicPartition(TRADES, p, first) for p, first in firsts.items()]).values():
        one.result(20)

    assert "Retention has removed" in refused(platform, release)
    assert "goes on without" in accepted(platform, release)
    driver = platform.drive(release)
    platform.works(release, batches=6, running=driver)
    assert platform.service("generator-stocks").end() == 0
    until(lambda: (at := platform.position(release)) is not None and at.offsets == {TRADES: ends(kafka)}, "all is read")
    stopped(driver)

    named = [one.gap for one in gaps.of(platform.store, release)]
    assert {gap.partition: (gap.first, gap.last) for gap in named} == {p: (read[p], firsts[p] - 1) for p in firsts}
    there = " OR ".join(f"(partition = {p} AND offset < {at})" for p, at in read.items())

    def all_but_the_gap(session: SparkSession, settings: Settings, start: Offsets, end: Offsets) -> DataFrame:
        left = records_in(session, settings, {TRADES: firsts} | dict(start), end)
        return copy.where(there).unionByName(left)

    monkeypatch.setattr(commits, "records_in", all_but_the_gap)
    job = job_in(platform.settings.storage.archive(release) / "code", "stock_stats")
    assert Oracle(spark, platform.settings, job, release, Closing("window_end", "5 seconds")).table() == []


def ends(kafka: Kafka) -> Mapping[int, int]:
    return kafka.ends({TRADES: range(4)})[TRADES]
