"""Functions with state and timers of the author's own run under the kit as they run live: in workers, on RocksDB."""

from __future__ import annotations

import pytest

from platform_core.testing import BATCH, CRASH, CRASH_AFTER_WRITE, END, QUIET, Kit, at, clock
from tests.testing.jobs import bought
from tests.testing.stateful import running, silent

PURCHASES = [bought("ann", 1, second=0), bought("bob", 2, second=1), BATCH, bought("ann", 4, second=2)]


def test_state_outlives_batches_and_crashes(kit: Kit) -> None:
    script = [*PURCHASES, CRASH_AFTER_WRITE, bought("ann", 8, second=3), CRASH, bought("bob", 16, second=4)]
    result = kit.run(running, script)
    assert result.columns("user", "total", "count") == [("ann", 13, 3), ("bob", 18, 2)]


def test_the_same_function_runs_as_a_batch(kit: Kit) -> None:
    assert kit.run_as_batch(running, PURCHASES).rows == kit.run(running, PURCHASES).rows


@pytest.mark.parametrize("between", [BATCH, QUIET])
def test_a_timer_fires_when_the_clock_passes_it_and_not_before(kit: Kit, between: object) -> None:
    script = [bought("ann", 1, second=0), between, bought("ann", 2, second=20), clock(59)]
    assert kit.run(silent, script).rows == []  # pyright: ignore[reportArgumentType]
    fired = kit.run(silent, [*script, clock(61)])  # pyright: ignore[reportArgumentType]
    assert fired.rows == [{"user": "ann", "last_seen": at(20)}]


def test_at_the_end_every_timer_has_fired(kit: Kit) -> None:
    result = kit.run(silent, [*PURCHASES, CRASH, END])
    assert result.columns("user", "last_seen") == [("ann", at(2)), ("bob", at(1))]
