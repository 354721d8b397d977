"""Starting a process that outlives its starter, proving later that it is the same one, and ending it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from platform_core.control.owners import Owner


def spawn(command: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path) -> subprocess.Popen[bytes]:
    """A process in a session of its own: a ctrl-C in the terminal does not reach it, and its children can be found."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:  # appending, so that cutting the file short does not leave a hole
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )


def members(session: int) -> list[psutil.Process]:
    """Every living process of a session: a service and what it started."""
    return [one for one in psutil.process_iter() if _session(one.pid) == session and Owner.of(one.pid).running]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True


def stop(owner: Owner, how: signal.Signals, seconds: float, reap: Callable[[], object] = lambda: None) -> bool:
    """Asks it to end, kills it with its session when it does not; whether it went by itself."""

    def gone() -> bool:
        reap()
        return not owner.running

    session = members(owner.pid)
    owner.signal(how)
    by_itself = until(gone, seconds)
    kill({*session, *members(owner.pid)})
    until(gone, 5)
    return by_itself


def kill(those: Iterable[psutil.Process]) -> None:
    for one in those:
        try:
            one.kill()  # psutil compares the beginning first, so that nobody else's process is hit
        except psutil.Error:
            continue
