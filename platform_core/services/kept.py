"""Which processes belong to a platform: the keeper marks what it starts, and children inherit the marks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import psutil

from platform_core.control.owners import Owner

HOME, SERVICE = "WEIR_KEPT", "WEIR_SERVICE"


def marks(home: Path, service: str) -> Mapping[str, str]:
    return {HOME: str(home), SERVICE: service}


def belonging(home: Path, service: str | None = None) -> list[psutil.Process]:
    """Living processes of a platform, or of one of its services with all that it started. Never this one."""
    return [one for one in psutil.process_iter() if one.pid != os.getpid() and _marked(one, str(home), service)]


def _marked(one: psutil.Process, home: str, service: str | None) -> bool:
    try:
        env = one.environ()
    except psutil.Error:  # another user's, or gone
        return False
    return env.get(HOME) == home and service in (None, env.get(SERVICE)) and Owner.of(one.pid).running


def in_session(leader: int, home: Path) -> list[psutil.Process]:
    """What a service left in its session. Postgres overwrites its environment: it is known by where it stands."""
    return [one for one in psutil.process_iter() if _session(one.pid) == leader and _stands_in(one, home)]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _stands_in(one: psutil.Process, home: Path) -> bool:
    try:
        return Path(one.cwd()).is_relative_to(home) and Owner.of(one.pid).running
    except psutil.Error:
        return False
