"""Waiting until drivers are as somebody asked, and until a candidate has reached the live release."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from platform_core.cli.output import say
from platform_core.errors import BatchFailed, ServiceUnavailable

if TYPE_CHECKING:
    from platform_core.cli.facts import Line
    from platform_core.control.drivers import Driver
    from platform_core.control.store import ControlStore
    from platform_core.control.wanted import Wanted
    from platform_core.names import ReleaseId

_TELL_SECONDS = 5.0  # between two lines of a replay's progress


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


def await_replay(store: ControlStore, release: ReleaseId) -> None:
    """Until it follows the live release; every few seconds a line says how far it is. Raises when it ends before."""
    told, at = "", float("-inf")
    try:
        while True:
            line = _line_of(store, release)
            if line is not None and line.role != "replaying":
                return
            says = "the control store is away" if line is None else f"{release} {line.state}: {line.why}"
            if says != told and time.monotonic() >= at + _TELL_SECONDS:
                say(says)
                told, at = says, time.monotonic()
            time.sleep(0.5)
    except KeyboardInterrupt:
        say(f"{release} replays on; `weir status {release.job}` shows how far it is.")
        raise


def _line_of(store: ControlStore, release: ReleaseId) -> Line | None:
    """As `weir status` has it; None while the control store is away, which a replay outlives."""
    from platform_core.cli import facts

    try:
        read = facts.read(store)
    except ServiceUnavailable:
        return None
    line = next((one for one in facts.lines(read) if one.release == str(release)), None)
    if line is None or line.role == "failed" or line.state in ("failed", "stopped", "paused"):
        what = "retired" if line is None else f"{line.state}, {line.reason}".rstrip(", ")
        raise BatchFailed(f"{release} does not replay: {what}.", remedy=f"See `weir status` and `weir logs {release}`.")
    if not (there := facts.supervision(read)).there:
        raise ServiceUnavailable(f"{release} waits, {there}.", remedy="It replays once the supervisor runs.")
    return line
