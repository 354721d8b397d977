"""Waiting for what was asked for: until drivers are as wanted, a cutover has ended, a candidate follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from platform_core.control import drivers, wanted
from platform_core.control.drivers import DriverState
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.control.wanted import Wanted
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.errors import BatchFailed, ServiceUnavailable
from platform_core.names import ReleaseId
from platform_core.operations import status
from platform_core.operations.status import StatusLine
from platform_core.waiting import looks

Tell = Callable[[str], None]
REVISION_SECONDS = 120.0  # for the driver to end its batch and for another to start
_TELL_SECONDS = 5.0  # between two lines of a replay's progress


def for_drivers(store: ControlStore, asked: Sequence[Wanted], seconds: float) -> None:
    """Until the drivers of all are as it was asked; raises when one was given up, or the time is over."""
    for again in looks(seconds, pause=0.3):
        found = drivers.all(store)
        open_ones = [one for one in asked if not _is_so(found.get(one.release), one)]
        if not open_ones:
            return
        _refuse_given_up(found, open_ones)
        if not again:
            states = ", ".join(f"{one.release} is {_state(found.get(one.release))}" for one in open_ones)
            raise ServiceUnavailable(f"Not so after {seconds:g} s: {states}.", remedy="See `weir status`.")


def _is_so(driver: DriverState | None, one: Wanted) -> bool:
    if one.state == "run":
        return driver is not None and driver.state == "running" and driver.generation >= one.generation
    return driver is None or driver.state in ("stopped", "failed")


def _refuse_given_up(found: Mapping[ReleaseId, DriverState], asked: Sequence[Wanted]) -> None:
    for one in asked:
        driver = found.get(one.release)
        if driver is not None and driver.given_up and driver.generation >= one.generation:
            raise BatchFailed(
                f"{one.release} does not run: {driver.reason}.", remedy=f"See `weir logs {one.release.job}`."
            )


def _state(driver: DriverState | None) -> str:
    return "not begun" if driver is None else driver.state


def for_revision(store: ControlStore, made: Release) -> None:
    """Nothing to wait for where the release is not wanted to run."""
    asked = wanted.of(store, made.id)
    if asked is not None and asked.state == "run":
        for_drivers(store, [asked], REVISION_SECONDS)


def for_cutover(store: ControlStore, found: Cutover, tell: Tell = lambda _: None) -> Cutover:
    """Until it has ended, as it does by itself: done, or aborted at its deadline. Each phase is told, and what it
    waits for. It stands in the store, and goes on when that was away."""
    told = ""
    while True:
        line = f"{found.kind} {found.id}: {found.phase}" + (f", {found.why}" if found.why else "")
        if line != told:
            tell(f"{_since(found):5.1f} s  {line}")
            told = line
        if not found.open:
            return found
        time.sleep(0.1)
        found = _again(store, found, tell)


def _again(store: ControlStore, found: Cutover, tell: Tell) -> Cutover:
    try:
        return protocol.get(store, found.id)
    except ServiceUnavailable as error:
        tell(f"{error.what} Waiting for it.")
        time.sleep(1.0)
        return found


def _since(found: Cutover) -> float:
    times = (found.requested_at, found.held_at, found.aligned_at, found.flipped_at, found.ended_at)
    known = [at for at in times if at is not None]
    return (max(known) - found.requested_at).total_seconds()


def refuse_aborted(found: Cutover) -> None:
    if found.phase == "aborted":
        raise BatchFailed(
            f"{found.kind.capitalize()} {found.id} of {', '.join(found.tables)} was given up: {found.why}. Nothing has "
            "changed.",
            remedy="See infra/runbooks/cutover-does-not-end.md, `weir status` and `weir logs`, then ask again.",
        )


def for_replay(store: ControlStore, release: ReleaseId, tell: Tell) -> None:
    """Until it follows the live release; every few seconds a line says how far it is. Raises when it ends before."""
    told, at = "", float("-inf")
    while True:
        line = _line_of(store, release)
        if line is not None and line.role != "replaying":
            return
        says = "the control store is away" if line is None else f"{release} {line.state}: {line.why}"
        if says != told and time.monotonic() >= at + _TELL_SECONDS:
            tell(says)
            told, at = says, time.monotonic()
        time.sleep(0.5)


def _line_of(store: ControlStore, release: ReleaseId) -> StatusLine | None:
    """As `weir status` has it; None while the control store is away, which a replay outlives."""
    try:
        read = status.read(store)
    except ServiceUnavailable:
        return None
    line = next((one for one in status.lines(read) if one.release == str(release)), None)
    if line is None or line.role == "failed" or line.state in ("failed", "stopped", "paused"):
        what = "retired" if line is None else f"{line.state}, {line.reason}".rstrip(", ")
        raise BatchFailed(f"{release} does not replay: {what}.", remedy=f"See `weir status` and `weir logs {release}`.")
    if not (there := read.supervision).there:
        raise ServiceUnavailable(f"{release} waits. {there}.", remedy="It replays once the supervisor runs.")
    return line
