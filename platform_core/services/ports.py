"""Who holds a port."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import psutil

from platform_core.errors import SetupError


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


def holder(port: int) -> str:
    """The process that listens there, in words."""
    try:
        for link in psutil.net_connections("tcp"):
            if link.laddr and link.laddr.port == port and link.status == psutil.CONN_LISTEN and link.pid:
                process = psutil.Process(link.pid)
                return f"process {link.pid} ({' '.join(process.cmdline())[:120] or process.name()})"
    except psutil.Error:
        pass
    return "a process of another user"


def require_free(service: str, ports: tuple[int, ...], setting: str) -> None:
    for port in ports:
        if taken(port):
            raise SetupError(
                f"{service} cannot start: port {port} is taken by {holder(port)}.",
                remedy=f"Stop that process, or set another port with {setting}.",
            )


def free(count: int) -> list[int]:
    """Consecutive ports that nobody listens on now."""
    while True:
        with ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            start = int(first.getsockname()[1])
            if start + count < 65536 and not any(taken(port) for port in range(start + 1, start + count)):
                return list(range(start, start + count))
