"""Starting a process that outlives its starter, proving later that it is the same one, and ending it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Proof:
    """Which process is meant. A pid alone may belong to another by now."""

    pid: int
    started: float

    def alive(self) -> bool:
        return started(self.pid) == self.started


def started(pid: int) -> float | None:
    """When it began, by a clock that nobody can set; None for one that is gone or a zombie."""
    try:
        state, since_boot = _stat(pid)
    except FileNotFoundError:
        return _started_elsewhere(pid) if not Path("/proc/self/stat").exists() else None
    except (OSError, ValueError):  # it ended while it was read
        return None
    return None if state in "ZX" else since_boot


def _stat(pid: int) -> tuple[str, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], float(fields[19])


def _started_elsewhere(pid: int) -> float | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def prove(pid: int) -> Proof | None:
    began = started(pid)
    return None if began is None else Proof(pid, began)


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
    return [process for process in psutil.process_iter() if _session(process.pid) == session and started(process.pid)]


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


def stop(proof: Proof, how: signal.Signals, seconds: float, reap: Callable[[], object] = lambda: None) -> bool:
    """Asks it to end, kills it with its session when it does not; whether it went by itself."""

    def gone() -> bool:
        reap()
        return not proof.alive()

    _send(proof.pid, how, gone)
    by_itself = until(gone, seconds)
    for process in members(proof.pid):
        _kill(process)
    until(gone, 5)
    return by_itself


def _send(pid: int, how: signal.Signals, gone: Callable[[], bool]) -> None:
    if not gone():
        try:
            os.kill(pid, how)
        except ProcessLookupError:
            return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        return
