"""Sending: paced by a clock, to a real broker, until told to stop."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ingest.generators.__main__ import main, told
from ingest.generators.faults import Sent
from ingest.generators.records import GeneratedRecord
from ingest.generators.sender import Summary, paced
from ingest.generators.stocks import records
from ingest.topics import PAGE_VIEWS, SEARCHES, STOCKS, USER_PROFILES, WORDCOUNT_INPUT

ROOT = Path(__file__).resolve().parents[2]


class Clock:
    """A clock that moves when it is waited for."""

    def __init__(self, stops_at: float = float("inf")) -> None:
        self.now, self.stops_at = 0.0, stops_at

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now >= self.stops_at


def due(*milliseconds: int) -> list[Sent]:
    return [Sent(at, GeneratedRecord("t", None, b"", at), "") for at in milliseconds]


def test_a_record_goes_out_when_it_is_due() -> None:
    clock, summary = Clock(), Summary()
    moments = [(one.due_ms, clock.now) for one in paced(due(0, 100, 2000), clock.wait, summary, lambda: clock.now)]
    assert moments == [(0, 0.0), (100, pytest.approx(0.1)), (2000, pytest.approx(2))]


def test_records_close_together_go_out_in_clumps() -> None:
    clock, summary = Clock(), Summary()
    sent = list(paced(due(*range(100)), clock.wait, summary, lambda: clock.now))
    assert len(sent) == 100
    assert summary.behind_ms < 6


def test_a_pace_that_cannot_be_kept_is_told() -> None:
    clock, summary = Clock(), Summary()
    clock.now = 3.0
    assert len(list(paced(due(0, 500), clock.wait, summary, lambda: clock.now))) == 2
    assert summary.behind_ms == 3000


def test_a_pace_ends_when_told_to_stop() -> None:
    clock = Clock(stops_at=1)
    assert len(list(paced(due(0, 500, 5000), clock.wait, Summary(), lambda: clock.now))) == 2


def test_the_summary_counts_by_topic_and_fault() -> None:
    summary = Summary(seconds=2)
    summary.counts.update({("stocks", ""): 90, ("stocks", "late"): 6, ("stocks", "far_future"): 4})
    assert told("stocks", summary, as_json=False) == (
        "stocks: stocks 100 sent, of them 4 far-future, 6 late; in 2.0 s, 50/s, at most 0 ms behind"
    )
    assert json.loads(told("stocks", summary, as_json=True))["topics"] == {
        "stocks": {"sent": 100, "far_future": 4, "late": 6}
    }


def test_history_without_an_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stocks", "--start-ms", "0"]) == 64
    assert "--records or --seconds" in capsys.readouterr().err


def test_a_broker_that_is_away_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.generators.creation.SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        assert main(["stocks", "--records", "1", "--bootstrap", nobody]) == 75
    assert nobody in capsys.readouterr().err


@pytest.mark.stack
def test_a_missing_topic_is_named_with_the_way_to_create_it(broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lines", "--records", "1", "--bootstrap", broker.servers]) == 64
    assert "wordcount-input" in (told := capsys.readouterr().err)
    assert "--create-topics" in told


@pytest.mark.stack
def test_history_arrives_whole_in_order_and_as_made(broker: Any) -> None:
    outcome = run(broker, "stocks", "--start-ms", "5000", "--records", "20000", "--create-topics", "--json")
    assert outcome["topics"] == {STOCKS.name: {"sent": 20000}}
    there = consumed(broker, STOCKS.name, STOCKS.partitions, 20000)
    made = list(islice(records(1, 5000), 20000))
    for ticker in {record.key for record in made}:
        assert [one for one in there if one.key == ticker] == [one for one in made if one.key == ticker]


@pytest.mark.stack
def test_far_future_records_reach_a_topic_that_was_created_here(broker: Any) -> None:
    faults = ("--far-future", "0.5", "--late", "0.5")
    outcome = run(broker, "clicks", "--start-ms", "5000", "--records", "2000", "--create-topics", "--json", *faults)
    views = outcome["topics"][PAGE_VIEWS.name]
    assert views["sent"] == views["late"] + views["far_future"]


@pytest.mark.stack
def test_sigterm_flushes_and_exits_cleanly(broker: Any) -> None:
    child = start(broker, "lines", "--rate", "500", "--create-topics", "--json")
    before = len(consumed(broker, "wordcount-input", 4, 100))
    child.send_signal(signal.SIGTERM)
    told, errors = child.communicate(timeout=30)
    assert child.returncode == 0, errors
    sent = json.loads(told)["topics"]["wordcount-input"]["sent"]
    assert sent >= before >= 100
    assert len(consumed(broker, "wordcount-input", 4, sent)) == sent


@pytest.fixture(autouse=True)
def _no_topics(request: pytest.FixtureRequest) -> None:
    """The generators' topics have fixed names, and other tests fill them on the same broker."""
    if "broker" not in request.fixturenames:
        return
    broker = request.getfixturevalue("broker")
    there = broker.admin.list_topics(timeout=10).topics
    for topic in (WORDCOUNT_INPUT, STOCKS, PAGE_VIEWS, SEARCHES, USER_PROFILES):
        if topic.name in there:
            broker.delete(topic.name)


def start(broker: Any, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ingest.generators", *arguments, "--bootstrap", broker.servers]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(broker: Any, *arguments: str) -> Any:
    told, errors = (child := start(broker, *arguments)).communicate(timeout=60)
    assert child.returncode == 0, errors
    return json.loads(told)


def consumed(broker: Any, topic: str, partitions: int, count: int, seconds: float = 30) -> list[GeneratedRecord]:
    """At least `count` records, in the order of their partitions; fewer when they have not come in time."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "generators"})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        return list(_until(consumer, count, time.monotonic() + seconds))
    finally:
        consumer.close()


def _until(consumer: Consumer, count: int, deadline: float) -> Iterator[GeneratedRecord]:
    while count > 0 and time.monotonic() < deadline:
        for message in consumer.consume(5000, 0.2):
            if message.error() is None:
                count -= 1
                yield GeneratedRecord(str(message.topic()), message.key(), message.value(), message.timestamp()[1])  # pyright: ignore
