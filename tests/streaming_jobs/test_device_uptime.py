from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from ingest.topics import HEARTBEATS
from platform_core.testing import BATCH, CRASH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, Result, at, record
from streaming_jobs.device_uptime.job import device_uptime

MILLISECOND = 1 / 3_600_000  # in hours


def beat(device: str, status: str, *, made: float, arrives: float, **place: Any) -> Record:
    """Hours count from the script's start, which is the start of an hour."""
    value = {"device_id": device, "status": status, "at": _moment(made)}
    return record(HEARTBEATS, key=device, value=value, second=_moment(arrives), **place)


def _moment(hour: float) -> Any:
    return at(0) + timedelta(milliseconds=round(hour * 3_600_000))


def table(result: Result) -> list[tuple[Any, ...]]:
    """Devices, hours, heartbeats, those that say UP, their share."""
    rows = result.columns("device_id", "hour", "heartbeats", "up", "up_share")
    return [(device, (hour - at(0)) / timedelta(hours=1), *counts) for device, hour, *counts in rows]


def test_each_hour_has_the_share_of_its_heartbeats_that_say_up(kit: Kit) -> None:
    script = [
        # half-open hours, and in any order; thirds are rounded
        beat("a", "UP", made=1, arrives=1),
        beat("a", "DOWN", made=2 - MILLISECOND, arrives=2),
        beat("a", "UP", made=2, arrives=2),
        BATCH,
        beat("a", "UP", made=1.5, arrives=2.1),
        beat("b", "DOWN", made=1.5, arrives=2.1),
        beat("c", "UP", made=1.1, arrives=2.1),
        beat("c", "UP", made=1.1, arrives=2.1),  # sent twice: counts twice
        beat("c", "DOWN", made=1.2, arrives=2.2),
        beat("c", "DOWN", made=1.3, arrives=2.2),
        beat("c", "DOWN", made=1.4, arrives=2.2),
        beat("c", "DOWN", made=1.5, arrives=2.2),
    ]
    expected = [
        ("a", 1, 3, 2, Decimal("0.6667")),
        ("a", 2, 1, 1, Decimal("1.0000")),
        ("b", 1, 1, 0, Decimal("0.0000")),
        ("c", 1, 6, 2, Decimal("0.3333")),
    ]
    assert table(kit.run(device_uptime, script)) == expected, "rows are there while their hours are open"
    closed = kit.run(device_uptime, [*script, END])
    assert closed.rows == kit.run_as_batch(device_uptime, script).rows
    assert table(closed) == expected


def test_up_to_three_hours_late_a_heartbeat_counts_and_beyond_it_is_rejected_in_any_batches(kit: Kit) -> None:
    """The clock of others is hours ahead: a device is late by its own records alone."""
    beats = [
        beat("a", "UP", made=6.6, arrives=6.6, partition=0),
        QUIET,
        beat("b", "UP", made=9, arrives=9, partition=1),
        QUIET,
        beat("a", "DOWN", made=6.5, arrives=9.5, partition=0),
        QUIET,
        beat("a", "UP", made=6.5 - MILLISECOND, arrives=9.5, partition=0),
        beat("a", "UP", made=9.5 - 21 * 24, arrives=9.5, partition=0),
        beat("b", "DOWN", made=9.6, arrives=9.5, partition=1),
        QUIET,
    ]
    result = kit.run(device_uptime, [*beats, END])
    assert table(result) == [
        ("a", 6, 2, 1, Decimal("0.5")),
        ("b", 9, 1, 1, Decimal(1)),
    ]
    assert [str(reject) for reject in result.rejects] == [
        "device.heartbeats[0]@2: more than 3 hours late",
        "device.heartbeats[0]@3: more than 3 hours late",
        "device.heartbeats[1]@1: event time more than 5 minutes ahead",
    ]
    sent = [step.value for step in beats if isinstance(step, Record)]
    assert [reject.value for reject in result.rejects] == [sent[3], sent[4], sent[5]]
    for other in (kit.run_as_batch(device_uptime, beats), kit.run(device_uptime, [*_at_once(beats), END])):
        assert (other.rows, other.rejects, other.late) == (result.rows, result.rejects, 0)


def _at_once(script: list[Any]) -> list[Record]:
    return [step for step in script if isinstance(step, Record)]


def test_nothing_is_lost_silently(kit: Kit) -> None:
    made = [beat(f"d{number % 3}", "UP", made=number - 5 * (number % 4), arrives=number) for number in range(40)]
    batches = [step for place, one in enumerate(made) for step in ((one, QUIET) if place % 8 == 7 else (one,))]
    result = kit.run(device_uptime, [*batches, END])
    assert {reject.reason for reject in result.rejects} == {"more than 3 hours late"}
    assert (len(result.rejects), result.late) == (30, 0)
    assert sum(row["heartbeats"] for row in result.rows) == 10


def test_what_is_no_heartbeat_is_rejected(kit: Kit) -> None:
    good = {"device_id": "a", "status": "UP", "at": at(0)}
    bad: list[Any] = [good | {"status": "up"}, good | {"device_id": ""}, good | {"at": None}, b'{"device_id":', b"\xff"]
    script = [record(HEARTBEATS, key="a", value=value, partition=0) for value in [good, *bad]]
    result = kit.run_as_batch(device_uptime, [*script, record(HEARTBEATS, key=None, value=good, partition=1)])
    assert [reject.reason for reject in result.rejects] == [
        "rule status is UP or DOWN",
        "rule device_id is given",
        "missing field: at",
        "not JSON of the declared shape (device_id string, status string, at timestamp)",
        "not UTF-8",
        "null key: device_id is needed",
    ]
    assert table(result) == [("a", 0, 1, 1, Decimal(1))]


def test_crashes_neither_lose_nor_double_heartbeats(kit: Kit) -> None:
    script = [
        beat("a", "UP", made=0, arrives=0),
        CRASH_AFTER_WRITE,
        beat("a", "DOWN", made=0.1, arrives=0.1),
        beat("a", "UP", made=-4, arrives=0.1),
        CRASH,
        beat("a", "UP", made=0.2, arrives=3.2),
        CRASH_AFTER_WRITE,
        beat("a", "UP", made=0.3, arrives=3.3),
    ]
    result = kit.run(device_uptime, script)
    assert table(result) == [("a", 0, 4, 3, Decimal("0.75"))]
    assert [reject.reason for reject in result.rejects] == ["more than 3 hours late"]
