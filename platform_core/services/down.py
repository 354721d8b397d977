"""`weir down`: stops everything, those first that others do not need, and makes sure that nothing is left."""

from __future__ import annotations

import signal
import time

from rich.console import Console

from platform_core.errors import ServiceUnavailable
from platform_core.services import kept, process, state
from platform_core.services.roster import managed
from platform_core.settings import Settings

STOP_SECONDS = 240.0  # drivers finish their batches, 120 s at the most


def down(settings: Settings, console: Console) -> None:
    """Returns when no process of this platform is left."""
    board = state.read(settings.home)
    if board.kept:
        _stop_keeper(board, settings, console)
    _stop_unkept(settings, console)
    process.end(kept.belonging(settings.home), 30.0)
    left = kept.belonging(settings.home)
    if left:
        raise ServiceUnavailable(
            f"{len(left)} processes are left, the first is {left[0].pid} ({left[0].name()}).", remedy="Kill them."
        )
    console.print("Nothing of it runs.", highlight=False)


def _stop_keeper(board: state.Board, settings: Settings, console: Console) -> None:
    keeper = board.keeper
    if keeper is None or not keeper.signal(signal.SIGTERM):
        return
    deadline, told = time.monotonic() + STOP_SECONDS, dict[str, str]()
    while keeper.running and time.monotonic() < deadline:
        for one in state.read(settings.home).services:
            if one.phase in ("stopping", "stopped") and told.get(one.name) != one.phase:
                told[one.name] = one.phase
                console.print(f"  {one.name:<15} {one.phase}", highlight=False)
        time.sleep(0.1)
    keeper.signal(signal.SIGKILL)


def _stop_unkept(settings: Settings, console: Console) -> None:
    """What a killed keeper left, in the order in which it would have stopped it."""
    board = state.read(settings.home)
    for service in reversed(managed(settings)):
        one = board.of(service.name)
        if one is None or one.owner is None:
            continue
        if one.lives:
            console.print(f"  {one.name:<15} stopping", highlight=False)
            process.stop(one.owner, service.stop_with, service.stop_seconds)
        process.end(kept.belonging(settings.home, service.name), service.stop_seconds)
        process.end(kept.in_session(one.owner.pid, settings.home), 5.0)
