"""Looks until a deadline: the last one comes when the time is over, so that what came late is still seen."""

from __future__ import annotations

import pytest

from platform_core import waiting
from platform_core.waiting import looks


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(waiting, "time", made)
    return made


def test_one_looks_until_the_time_is_over_and_once_more(clock: Clock) -> None:
    assert [(again, clock.now) for again in looks(3, pause=2)] == [(True, 100.0), (True, 102.0), (False, 104.0)]


def test_without_any_time_one_looks_once(clock: Clock) -> None:
    assert list(looks(0, pause=2)) == [False]
    assert clock.now == 100.0


def test_whoever_has_seen_enough_waits_no_more(clock: Clock) -> None:
    for _ in looks(3, pause=2):
        break
    assert clock.now == 100.0
