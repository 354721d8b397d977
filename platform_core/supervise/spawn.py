"""Drivers as processes: begun apart from the supervisor, so that they outlive it; reaped; and nothing of them left."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import BinaryIO

import psutil

from platform_core.control import releases
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.errors import Permanent
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.supervise.decide import Ending
from platform_core.telemetry import event

Command = Callable[[ReleaseId], tuple[Sequence[str], Mapping[str, str]]]
_LOG_BYTES = 50_000_000
logger = logging.getLogger(__name__)


def archived(settings: Settings, store: ControlStore) -> Command:
    """The command that runs a release from its archive, in the revision that is in force."""

    def command(release: ReleaseId) -> tuple[Sequence[str], Mapping[str, str]]:
        from platform_core.release.archive import command_for

        return command_for(settings, release, releases.get(store, release).revision)

    return command


def log_of(settings: Settings, release: ReleaseId) -> Path:
    return settings.storage.logs / f"driver-{release.group}.log"


class Spawner:
    """Begins drivers in threads: a release's environment may have to be built first, which takes minutes."""

    def __init__(self, settings: Settings, command: Command) -> None:
        self._settings = settings
        self._command = command
        self._threads = ThreadPoolExecutor(2, "spawn")
        self._begun: dict[ReleaseId, Future[subprocess.Popen[bytes] | None]] = {}
        self._children: dict[Owner, tuple[ReleaseId, subprocess.Popen[bytes]]] = {}
        self._endings: dict[ReleaseId, tuple[Owner | None, Ending]] = {}

    def begin(self, release: ReleaseId, may: Callable[[], bool]) -> None:
        """`may` is asked again right before the process begins."""
        self._endings.pop(release, None)
        self._begun[release] = self._threads.submit(self._spawn, release, may)

    def spawning(self, release: ReleaseId) -> bool:
        return release in self._begun

    def ending(self, release: ReleaseId, last: Owner | None) -> Ending | None:
        """How this supervisor's newest process of the release ended; None when `last` is another process."""
        owner, ending = self._endings.get(release, (None, None))
        return ending if owner is None or last is None or owner == last else None

    def begun(self) -> dict[ReleaseId, Owner]:
        """The processes that have begun since the last call."""
        done = {one: future for one, future in self._begun.items() if future.done() and not future.cancelled()}
        owners: dict[ReleaseId, Owner] = {}
        for release, future in done.items():
            del self._begun[release]
            child = self._outcome(release, future)
            if child is not None:
                owners[release] = Owner.of(child.pid)
                self._children[owners[release]] = (release, child)
        return owners

    def reap(self) -> None:
        """Takes the exit codes of those that ended, so that none stays a zombie."""
        for owner, (release, child) in list(self._children.items()):
            code = child.poll()
            if code is not None:
                del self._children[owner]
                self._endings[release] = owner, _ending(code, log_of(self._settings, release))
                event(logger, "driver ended", release=str(release), pid=owner.pid, exit_code=code)

    def running(self, only: ReleaseId | None = None) -> frozenset[Owner]:
        mine = ((owner, release) for owner, (release, _) in self._children.items())
        return frozenset(owner for owner, release in mine if only in (None, release) and owner.running)

    def close(self) -> None:
        """No more starts; whoever calls has made `may` say no. One that still builds an environment is not awaited."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        wait(self._begun.values(), timeout=5)

    def _spawn(self, release: ReleaseId, may: Callable[[], bool]) -> subprocess.Popen[bytes] | None:
        argv, env = self._command(release)
        if not may():
            return None
        with _opened(log_of(self._settings, release)) as log:
            return subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd=self._settings.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _outcome(
        self, release: ReleaseId, future: Future[subprocess.Popen[bytes] | None]
    ) -> subprocess.Popen[bytes] | None:
        error = future.exception()
        if error is not None:
            self._endings[release] = None, Ending(f"could not begin: {error}", isinstance(error, Permanent))
            event(logger, "driver could not begin", level=logging.ERROR, release=str(release), error=error)
            return None
        if future.result() is None:
            self._endings[release] = None, Ending("was not begun: the supervisor had lost its lease")
        return future.result()


def end_session(owner: Owner) -> list[int]:
    """Kills what a dead driver left in its session (a JVM, Python workers). Returns their pids.

    No new process can get the pid while a session of that id lives; so when the pid is free, the session is the
    driver's.
    """
    if not owner.gone or _exists(owner.pid):
        return []
    left = [process for process in psutil.process_iter() if _session(process.pid) == owner.pid]
    for process in left:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    return [process.pid for process in left]


def _exists(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def _opened(log: Path) -> BinaryIO:
    """Appends; one older file is kept."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


def _ending(code: int, log: Path) -> Ending:
    ending = Ending.exited(code)
    said = _last_line(log) if code > 0 else ""
    return Ending(f"{ending.how}, its log's last line: {said}", ending.permanent) if said else ending


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4000))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip()[:300] if lines else ""
