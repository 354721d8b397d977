"""Starting a process that outlives its starter, proving later that it is the same one, and ending it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from platform_core.control.owners import Owner
from platform_core.waiting import looks


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


def stand_back(pid: int, niceness: int) -> None:
    """Linux weighs sessions against each other, and a process's niceness only within its session: both are set."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Whether the condition came true in time."""
    return any(condition() for _ in looks(seconds, pause))


def stop(owner: Owner, how: signal.Signals, seconds: float, reap: Callable[[], object] = lambda: None) -> bool:
    """Asks it to end, kills it when it does not; whether it went by itself."""

    def gone() -> bool:
        reap()
        return not owner.running

    owner.signal(how)
    by_itself = until(gone, seconds)
    owner.signal(signal.SIGKILL)
    until(gone, 5)
    return by_itself


def end(those: Iterable[psutil.Process], seconds: float) -> None:
    """The same for processes that somebody else started."""
    owners = [Owner.of(one.pid) for one in those]
    for how, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        for owner in owners:
            owner.signal(how)
        until(lambda: not any(owner.running for owner in owners), patience)
