"""Who holds a port."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import psutil

from platform_core.errors import SetupError

DYING_SECONDS = 10.0  # a killed process keeps its ports until the kernel has freed its memory


def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False


def taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free to us
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def holder(port: int) -> psutil.Process | None:
    """The process that listens there; None for another user's, and for one that is dying."""
    try:
        for link in psutil.net_connections("tcp"):
            if link.laddr and link.laddr.port == port and link.status == psutil.CONN_LISTEN and link.pid:
                return psutil.Process(link.pid)
    except psutil.Error:
        pass
    return None


def describe(one: psutil.Process | None) -> str:
    try:
        return "a process of another user" if one is None else f"process {one.pid} ({' '.join(one.cmdline())[:120]})"
    except psutil.Error:
        return "a process that has just ended"


def require_free(service: str, ports: tuple[int, ...], setting: str) -> None:
    for port in ports:
        deadline = time.monotonic() + DYING_SECONDS
        while taken(port):
            one = holder(port)
            if one is not None or time.monotonic() > deadline:
                raise SetupError(
                    f"{service} cannot start: port {port} is taken by {describe(one)}.",
                    remedy=f"Stop that process, or set another port with {setting}.",
                )
            time.sleep(0.1)


def free(count: int) -> list[int]:
    """Consecutive ports that nobody listens on now."""
    while True:
        with ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            start = int(first.getsockname()[1])
            if start + count < 65536 and not any(taken(port) for port in range(start + 1, start + count)):
                return list(range(start, start + count))
