"""Waiting until drivers are as somebody asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from platform_core.errors import BatchFailed, ServiceUnavailable

if TYPE_CHECKING:
    from platform_core.control.drivers import Driver
    from platform_core.control.store import ControlStore
    from platform_core.control.wanted import Wanted
    from platform_core.names import ReleaseId


def await_all(store: ControlStore, asked: Sequence[Wanted], state: str, seconds: float) -> None:
    """Until the drivers of all are as it was asked; raises when one was given up, or the time is over."""
    from platform_core.control import drivers

    reached = _running if state == "run" else _stopped
    deadline = time.monotonic() + seconds
    while True:
        found = drivers.all(store)
        open_ones = [one for one in asked if not reached(found.get(one.release), one)]
        if not open_ones:
            return
        _refuse_given_up(found, open_ones)
        if time.monotonic() > deadline:
            states = ", ".join(f"{one.release} is {_state(found.get(one.release))}" for one in open_ones)
            raise ServiceUnavailable(f"Not so after {seconds:g} s: {states}.", remedy="See `weir status`.")
        time.sleep(0.3)


def _running(driver: Driver | None, one: Wanted) -> bool:
    return driver is not None and driver.state == "running" and driver.generation >= one.generation


def _stopped(driver: Driver | None, one: Wanted) -> bool:
    _ = one
    return driver is None or driver.state in ("stopped", "failed")


def _refuse_given_up(found: dict[ReleaseId, Driver], asked: Sequence[Wanted]) -> None:
    for one in asked:
        driver = found.get(one.release)
        if driver is not None and driver.given_up and driver.generation >= one.generation:
            raise BatchFailed(
                f"{one.release} does not run: {driver.reason}.", remedy=f"See `weir logs {one.release.job}`."
            )


def _state(driver: Driver | None) -> str:
    return "not begun" if driver is None else driver.state
