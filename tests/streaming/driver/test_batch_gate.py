"""A pause is told only when no batch is at work, and none can begin."""

from __future__ import annotations

import threading

import pytest

from platform_core.services.process import until
from platform_core.streaming.driver.batch_gate import BatchGate


class Recalled(Exception):
    pass


def nothing() -> None:
    return None


def recalled() -> None:
    raise Recalled


def waiting(gate: BatchGate, batch: int) -> threading.Thread:
    thread = threading.Thread(target=gate.enter, args=(batch, nothing), daemon=True)
    thread.start()
    return thread


def test_a_batch_at_work_is_waited_for() -> None:
    gate = BatchGate()
    gate.enter(3, nothing)
    assert not gate.block("cutover")
    gate.leave(3)
    assert gate.block("cutover")


def test_no_batch_begins_while_blocked_and_the_one_that_waits_goes_on_when_unblocked() -> None:
    gate = BatchGate()
    assert gate.block("cutover")
    thread = waiting(gate, 4)
    thread.join(0.3)
    assert thread.is_alive()
    assert gate.begun == -1
    gate.unblock("cutover")
    assert until(lambda: not thread.is_alive(), 5)
    assert gate.begun == 4


def test_each_reason_is_unblocked_by_itself() -> None:
    gate = BatchGate()
    gate.block("cutover")
    gate.block("takeover")
    gate.unblock("cutover")
    thread = waiting(gate, 1)
    thread.join(0.3)
    assert thread.is_alive()
    gate.unblock("takeover")
    assert until(lambda: not thread.is_alive(), 5)


def test_what_a_dead_driver_may_have_begun_is_finished_first() -> None:
    gate = BatchGate()
    gate.must_finish(7)
    assert not gate.block("cutover")
    gate.enter(7, nothing)
    assert not gate.block("cutover")
    gate.leave(7)
    assert gate.block("cutover")


def test_a_batch_that_is_recalled_never_begins() -> None:
    gate = BatchGate()
    with pytest.raises(Recalled):
        gate.enter(2, recalled)
    assert gate.begun == -1
    assert gate.block("cutover")
