"""Who holds a port."""

from __future__ import annotations

import random
import socket

import psutil

from platform_core.errors import SetupError
from platform_core.waiting import looks

LISTENED = range(10_000, 32_768)  # outgoing connections get theirs above: from 32768 in Linux, from 49152 elsewhere
DYING_SECONDS = 10.0  # a killed process keeps its ports until the kernel has freed its memory
LISTENING = frozenset({psutil.CONN_LISTEN})
CONNECTED = frozenset({psutil.CONN_ESTABLISHED, psutil.CONN_SYN_SENT, psutil.CONN_CLOSE_WAIT})


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


def holder(port: int, how: frozenset[str] = LISTENING) -> psutil.Process | None:
    """The process that listens there; None for another user's, and for one that is dying."""
    try:
        for link in psutil.net_connections("tcp"):
            if link.laddr and link.laddr.port == port and link.status in how and link.pid:
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
        for again in looks(DYING_SECONDS, pause=0.1):
            if not taken(port):
                break
            one = holder(port)
            if one is not None or not again:
                raise SetupError(
                    f"{service} cannot start: port {port} is taken by {describe(one or holder(port, CONNECTED))}.",
                    remedy=f"Stop that process, or set another port with {setting}.",
                )


def free(count: int) -> list[int]:
    """Consecutive ports that nobody holds now, and that no outgoing connection is given by the system meanwhile."""
    while True:
        start = random.randrange(LISTENED.start, LISTENED.stop - count)
        wanted = list(range(start, start + count))
        if not any(taken(port) for port in wanted):
            return wanted
