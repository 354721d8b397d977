"""Who a process is, so that nobody takes another process for it: machine, pid and the moment it began."""

from __future__ import annotations

import functools
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Owner:
    """A process. `started_at` counts on the machine's own clock; compare it for equality, do not print it as a date."""

    host: str
    pid: int
    started_at: float

    @classmethod
    def this_process(cls) -> Owner:
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Owner:
        """The process that has `pid` now; one that has gone meanwhile gets a beginning that no process has."""
        seen = _seen(pid)
        return cls(machine(), pid, -1.0 if seen is None else seen[0])

    @property
    def here(self) -> bool:
        """Whether this machine can see the process, and so can prove that it has gone."""
        return self.host == machine()

    @property
    def running(self) -> bool:
        """Whether the process is known to exist; a zombie has ended."""
        return self.here and _seen(self.pid) == (self.started_at, True)

    @property
    def gone(self) -> bool:
        """Whether the process is known to have ended, which is proven on its own machine alone."""
        return self.here and not self.running

    def signal(self, number: signal.Signals) -> bool:
        """Sends the signal to this very process, never to one that has inherited its pid."""
        if not self.running:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"


@functools.cache
def machine() -> str:
    """The host's name and, on Linux, its boot and pid namespace: elsewhere the same pid is another process."""
    proc = Path("/proc")
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()[:8]
        namespace = os.readlink(proc / "self/ns/pid").strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}-{namespace}"


def _seen(pid: int) -> tuple[float, bool] | None:
    """When the process began and whether it still runs; None when nothing of it is left, not even a zombie.

    Seconds from the boot on Linux, since psutil's create_time moves when the clock is set.
    """
    if not Path("/proc/self/stat").exists():
        return _seen_by_psutil(pid)
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK"), after_name[0] not in "ZX"


def _seen_by_psutil(pid: int) -> tuple[float, bool] | None:
    try:
        process = psutil.Process(pid)
        return process.create_time(), process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
