from __future__ import annotations

from typing import Any

from ingest.topics import LOGINS
from platform_core.testing import BATCH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, at, clock, record
from streaming_jobs.burst_alert.job import burst_alert


def login(user: str, *, second: float, succeeded: bool = False, **place: Any) -> Record:
    value = {"user_id": user, "address": "198.51.100.7", "succeeded": succeeded}
    return record(LOGINS, key=user, value=value, second=second, **place)


def failures(user: str, *seconds: float) -> list[Record]:
    return [login(user, second=second) for second in seconds]


CASES: dict[str, list[float]] = {  # the users of one run: none touches another
    "five": [0, 1, 2, 3, 4],
    "six": [0, 1, 2, 3, 4, 5],
    "six in ten seconds, both ends in": [0, 2, 4, 6, 8, 10],
    "six in a little more": [0, 2, 4, 6, 8, 10.001],
    "six over the border of a minute": [55, 57, 59, 61, 63, 65],
    "a duplicate is a second failure": [0, 1, 2, 3, 4, 4],
    "six at once": [7, 7, 7, 7, 7, 7],
    "one burst goes on": [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15],
    "always six": [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20],
    "two bursts": [0, 1, 2, 3, 4, 5, 40, 41, 42, 43, 44, 45],
    "two bursts, one failure between them": [0, 1, 2, 3, 4, 5, 14, 15, 15, 15, 15, 15],
    "two bursts at once, far apart": [0, 0, 0, 0, 0, 0, 11, 11, 11, 11, 11, 11],
}
ALERTS: list[tuple[str, float, float, int]] = [
    ("a duplicate is a second failure", 4, 0, 6),
    ("always six", 10, 0, 6),
    ("one burst goes on", 5, 0, 6),
    ("six", 5, 0, 6),
    ("six at once", 7, 7, 6),
    ("six in ten seconds, both ends in", 10, 0, 6),
    ("six over the border of a minute", 65, 55, 6),
    ("two bursts", 5, 0, 6),
    ("two bursts", 45, 40, 6),
    ("two bursts at once, far apart", 0, 0, 6),
    ("two bursts at once, far apart", 11, 11, 6),
    ("two bursts, one failure between them", 5, 0, 6),
    ("two bursts, one failure between them", 15, 5, 7),
]


def rows(found: list[tuple[str, float, float, int]]) -> list[tuple[Any, ...]]:
    return [(user, at(began), at(first), count) for user, began, first, count in found]


def in_order_of_time(users: dict[str, list[float]]) -> list[Record]:
    every = sorted((second, user) for user, seconds in users.items() for second in seconds)
    return [login(user, second=second) for second, user in every]


COLUMNS = ("user_id", "began_at", "first_failure", "failures")


def test_more_than_five_failures_in_any_ten_seconds_are_one_alert_a_burst(kit: Kit) -> None:
    assert kit.run_as_batch(burst_alert, in_order_of_time(CASES)).columns(*COLUMNS) == rows(ALERTS)


def test_the_stream_raises_the_same_alerts_out_of_order_and_with_a_crash_and_publishes_each_once(kit: Kit) -> None:
    logins = in_order_of_time(CASES)
    swapped = [one for pair in zip(logins[1::2], logins[::2], strict=False) for one in pair]
    swapped += logins[len(swapped) :]
    script = [*swapped[:40], QUIET, *swapped[40:80], CRASH_AFTER_WRITE, *swapped[80:100], BATCH, *swapped[100:], END]
    result = kit.run(burst_alert, script)
    assert (result.late, result.rejects) == (0, [])
    assert result.columns(*COLUMNS) == rows(ALERTS)
    assert sorted(key for key, _ in result.published) == [user for user, *_ in ALERTS]


def test_successes_neither_count_nor_end_a_burst_and_what_is_no_login_is_rejected(kit: Kit) -> None:
    script = [
        *failures("ann", 0, 1, 2),
        login("ann", second=2.5, succeeded=True),
        *failures("ann", 3, 4, 5, 6, 7),
        *[login("bob", second=second, succeeded=True) for second in range(9)],
        login("", second=8, partition=0, offset=100),
        record(LOGINS, key="ann", value=b'{"user_id":"ann"}', second=8, partition=0, offset=101),
        record(LOGINS, key=None, value=b"\xff", second=8, partition=0, offset=102),
        END,
    ]
    result = kit.run(burst_alert, script)
    assert result.columns(*COLUMNS) == rows([("ann", 5, 0, 6)])
    assert [str(reject) for reject in result.rejects] == [
        "logins[0]@100: rule user_id is given",
        "logins[0]@101: missing field: succeeded",
        "logins[0]@102: null key: user_id is needed",
    ]


def test_an_alert_is_final_twenty_seconds_later_and_a_late_failure_raises_none(kit: Kit) -> None:
    five = failures("ann", 0, 1, 2, 3, 4)
    raised = kit.run(burst_alert, [*five, *failures("ann", 5), clock(21)])
    assert raised.columns("began_at") == [(at(5),)]
    late = kit.run(burst_alert, [*five, clock(41), *failures("ann", 5), END])
    assert (late.rows, late.late) == ([], 1)
