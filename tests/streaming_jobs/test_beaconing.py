from __future__ import annotations

from typing import Any

import pytest

from ingest.topics import CONNECTIONS
from platform_core.testing import BATCH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, at, record
from streaming_jobs.beaconing.job import beaconing

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600
COLUMNS = ("host", "address", "first_call", "raised_at", "calls", "mean_gap")


def call(host: str, address: str, *, second: float, **place: Any) -> Record:
    return record(CONNECTIONS, key=host, value={"host": host, "address": address, "bytes": 64}, second=second, **place)


def every(gap: float, calls: int, start: float = 0) -> list[float]:
    return [start + gap * number for number in range(calls)]


CASES: dict[str, list[float]] = {  # hosts of one run, which call one address each
    "nine calls": every(MINUTE, 9),
    "ten calls": every(MINUTE, 10),
    "a hundred calls are one alert": every(MINUTE, 100),
    "a little irregular": [number * MINUTE + (6 if number % 2 else 0) for number in range(10)],
    "too irregular": [number * MINUTE + (24 if number % 2 else 0) for number in range(10)],
    "regular after the first gap": [0, *every(MINUTE, 60, start=2 * MINUTE)],
    "each call twice, as duplicates are": sorted(every(MINUTE, 10) * 2),
    "ten seconds apart": every(10, 10),
    "closer": every(9.9, 30),
    "ten calls in a day": every(2 * HOUR + 40 * MINUTE, 10),
    "nine calls in a day": every(2 * HOUR + 41 * MINUTE, 30),
    "usual, since it was called before": [0, *every(MINUTE, 100, start=25 * HOUR)],
    "new again after a week": [*every(MINUTE, 10), *every(MINUTE, 10, start=8 * DAY)],
    "usual once a week": [*every(MINUTE, 10), 7 * DAY, *every(MINUTE, 10, start=8 * DAY)],
}
ALERTS: dict[str, list[tuple[float, float, int, float]]] = {  # first call, raised at, calls, mean gap
    "ten calls": [(0, 9 * MINUTE, 10, 60)],
    "a hundred calls are one alert": [(0, 9 * MINUTE, 10, 60)],
    "a little irregular": [(0, 9 * MINUTE + 6, 10, 546 / 9)],
    "regular after the first gap": [(0, 23 * MINUTE, 23, 1380 / 22)],
    "each call twice, as duplicates are": [(0, 9 * MINUTE, 10, 60)],
    "ten seconds apart": [(0, 90, 10, 10)],
    "ten calls in a day": [(0, DAY, 10, 9600)],
    "new again after a week": [(0, 9 * MINUTE, 10, 60), (8 * DAY, 8 * DAY + 9 * MINUTE, 10, 60)],
    "usual once a week": [(0, 9 * MINUTE, 10, 60)],
}


def expected() -> list[tuple[Any, ...]]:
    return sorted(
        (host, "203.0.113.9", at(first), at(raised), calls, gap)
        for host, alerts in ALERTS.items()
        for first, raised, calls, gap in alerts
    )


def calls_in_order_of_time() -> list[Record]:
    made = sorted((second, host) for host, seconds in CASES.items() for second in seconds)
    return [call(host, "203.0.113.9", second=second) for second, host in made]


def test_a_new_address_called_regularly_is_one_alert_with_its_evidence(kit: Kit) -> None:
    result = kit.run_as_batch(beaconing, calls_in_order_of_time())
    assert result.columns(*COLUMNS) == expected()
    assert all(row["gap_deviation"] <= 0.2 for row in result.rows)
    assert [row["gap_deviation"] for row in result.rows if row["host"] == "ten calls"] == [0]
    irregular = [row["gap_deviation"] for row in result.rows if row["host"] == "a little irregular"]
    assert irregular == [pytest.approx(0.0983, abs=1e-4)]


def test_the_stream_raises_the_same_alerts_out_of_order_and_with_a_crash(kit: Kit) -> None:
    calls = calls_in_order_of_time()
    calls = [one for place in range(0, len(calls), 4) for one in reversed(calls[place : place + 4])]
    script = [*calls[:80], QUIET, *calls[80:160], CRASH_AFTER_WRITE, *calls[160:240], BATCH, *calls[240:], END]
    result = kit.run(beaconing, script)
    assert (result.late, result.rejects) == (0, [])
    assert result.rows == kit.run_as_batch(beaconing, calls).rows


def test_pairs_do_not_mix_a_late_call_is_left_out_and_what_is_no_call_is_rejected(kit: Kit) -> None:
    script = [
        *[call("a", f"192.0.2.{number % 2}", second=number * MINUTE) for number in range(18)],  # nine of each
        *[call("b", "192.0.2.1", second=second) for second in every(MINUTE, 9, start=17 * MINUTE)],
        QUIET,
        call("b", "192.0.2.1", second=16 * MINUTE),
        call("", "192.0.2.1", second=26 * MINUTE, partition=0, offset=100),
        call("b", "", second=26 * MINUTE, partition=0, offset=101),
        record(CONNECTIONS, key="b", value=b'{"host":"b"}', second=26 * MINUTE, partition=0, offset=102),
        END,
    ]
    result = kit.run(beaconing, script)
    assert (result.rows, result.late) == ([], 1)
    assert [str(reject) for reject in result.rejects] == [
        "connections[0]@100: rule host is given",
        "connections[0]@101: rule address is given",
        "connections[0]@102: missing field: address",
    ]
