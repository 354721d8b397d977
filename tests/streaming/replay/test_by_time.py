"""A replay's steps: by record time, bounded by count, never past the live release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_core.control.position import Offsets, Places, offsets_of, records_between
from platform_core.errors import PositionError
from platform_core.streaming.replay.by_time import Walk
from platform_core.streaming.source.kafka import prove_kept
from platform_core.streaming.source.stamps import Stamped
from tests import properties

Stamps = dict[int, list[int]]  # partition -> timestamps, by offset


@dataclass(frozen=True)
class Topic:
    """Read as Kafka's topics are, without a broker."""

    since: Callable[[int], Offsets]
    stamp: Callable[[str, int, int], int]

    def records(self, at: Places, end: Places) -> int:
        return records_between(offsets_of(at), offsets_of(end))

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]:
        return Stamped(self.since, self.stamp, now_ms, offsets_of(at), offsets_of(goal)).since


def walk(stamps: Stamps, most: int) -> Walk:
    def since(at_ms: int) -> Offsets:
        """As Kafka answers: the first record stamped at or after the moment, whatever follows it."""
        return {"t": {partition: _first(times, at_ms) for partition, times in stamps.items()}}

    return Walk(Topic(since, lambda _, partition, offset: stamps[partition][offset]), most, now_ms=lambda: 10_000)


def _first(times: list[int], at_ms: int) -> int:
    return next((place for place, time in enumerate(times) if time >= at_ms), len(times))


def ends(stamps: Stamps) -> dict[str, dict[int, int]]:
    return {"t": {partition: len(times) for partition, times in stamps.items()}}


def test_a_busy_partition_does_not_run_ahead_of_a_quiet_one() -> None:
    stamps = {0: list(range(100)), 1: list(range(0, 100, 10))}
    found = walk(stamps, 55).target({"t": {0: 0, 1: 0}}, ends(stamps))
    assert found == {"t": {0: 50, 1: 5}}


def test_what_is_left_is_one_step_when_it_is_small() -> None:
    stamps = {0: [1, 2, 3]}
    assert walk(stamps, 10).target({"t": {0: 1}}, ends(stamps)) == ends(stamps)


def test_many_records_of_one_moment_are_one_step() -> None:
    stamps = {0: [5] * 30 + [6]}
    assert walk(stamps, 10).target({"t": {0: 0}}, ends(stamps)) == {"t": {0: 30}}


def test_a_record_dated_years_ahead_hides_nothing_that_follows_it() -> None:
    sound, deceived = list(range(100)), [0, 1, 2, 99_999, *range(4, 100)]
    steps, bound = walk({0: sound, 1: deceived}, 50), ends({0: sound, 1: deceived})
    at: Offsets = {"t": {0: 0, 1: 0}}
    reached: list[tuple[int, int]] = []
    while at != bound:
        at = offsets_of(steps.target(at, bound))
        reached.append((at["t"][0], at["t"][1]))
    assert reached == [(25, 25), (50, 50), (75, 75), (100, 100)]


PARTITIONS = st.lists(st.lists(st.integers(0, 500) | st.just(50_000), max_size=40), min_size=1, max_size=4)


@properties.tiers(few=100, many=2_000)
def test_every_step_moves_on_until_all_is_read(examples: int) -> None:
    @properties.of(examples)
    @given(PARTITIONS, st.integers(1, 20))
    def reads_all(partitions: list[list[int]], most: int) -> None:
        stamps = dict(enumerate(partitions))
        steps, at, bound = walk(stamps, most), {"t": dict.fromkeys(stamps, 0)}, ends(stamps)
        for _ in range(200):
            if at == bound:
                return
            reached = offsets_of(steps.target(at, bound))
            assert records_between(at, reached) > 0
            assert all(at["t"][p] <= reached["t"][p] <= bound["t"][p] for p in stamps)
            at = {"t": dict(reached["t"])}
        raise AssertionError("the replay does not end")

    reads_all()


def test_what_retention_removed_before_it_was_read_is_named_with_offsets_and_count() -> None:
    with pytest.raises(PositionError, match=r"removed 40 records that were not read yet: t\[0\] 10\.\.49"):
        prove_kept({"t": {0: 10, 1: 7}}, {"t": {0: 50, 1: 3}})
