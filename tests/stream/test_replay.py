"""A replay's steps: by record time, bounded by count, never past the live release."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_core.control.position import Offsets, records_between
from platform_core.errors import PositionError
from platform_core.stream.replay import Walk, prove_kept

Stamps = dict[int, list[int]]  # partition -> timestamps, by offset


def walk(stamps: Stamps, most: int) -> Walk:
    def since(at_ms: int) -> Offsets:
        return {"t": {partition: bisect_left(times, at_ms) for partition, times in stamps.items()}}

    return Walk(since, most, now_ms=lambda: 10_000)


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


@given(
    st.lists(st.lists(st.integers(0, 500), max_size=40).map(sorted), min_size=1, max_size=4),
    st.integers(1, 20),
)
def test_every_step_moves_on_until_all_is_read(partitions: list[list[int]], most: int) -> None:
    stamps = dict(enumerate(partitions))
    steps, at, bound = walk(stamps, most), {"t": dict.fromkeys(stamps, 0)}, ends(stamps)
    for _ in range(200):
        if at == bound:
            return
        reached = steps.target(at, bound)
        assert records_between(at, reached) > 0
        assert all(at["t"][p] <= reached["t"][p] <= bound["t"][p] for p in stamps)
        at = {"t": dict(reached["t"])}
    raise AssertionError("the replay does not end")


def test_what_retention_removed_before_it_was_read_is_named_with_offsets_and_count() -> None:
    with pytest.raises(PositionError, match=r"removed 40 records that were not read yet: t\[0\] 10\.\.49"):
        prove_kept({"t": {0: 10, 1: 7}}, {"t": {0: 50, 1: 3}})
