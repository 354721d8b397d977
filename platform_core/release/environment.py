"""Environments of locks: the running one where its lock is the release's, else one built for that lock and kept."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from platform_core.errors import SetupError
from platform_core.release.contents import LOCK
from platform_core.settings import Settings

STAMP = "weir-lock.sha256"  # written last: an environment without it was never finished


def python_of(settings: Settings, code: Path, lock_sha256: str) -> Path:
    """An interpreter with the packages of the lock in `code`; building one takes minutes, finding it none."""
    running = Path(sys.prefix)
    if stamp_of(running) == lock_sha256:
        return running / "bin" / "python"
    place = settings.home / "environments" / lock_sha256
    with _alone(place):
        if stamp_of(place) != lock_sha256:
            _build(place, code / LOCK, lock_sha256, settings.logs / f"environment-{lock_sha256[:12]}.log")
    return place / "bin" / "python"


def stamp_of(folder: Path) -> str:
    """The lock that an environment was made from; empty when it is none, or half made."""
    path = folder / STAMP
    return path.read_text().strip() if path.is_file() else ""


@contextmanager
def _alone(place: Path) -> Generator[None]:
    """Two releases of one lock may start at once; the second waits and finds the environment there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(place: Path, lock: Path, lock_sha256: str, log: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
    log.parent.mkdir(parents=True, exist_ok=True)
    python = str(place / "bin" / "python")
    uv = _uv()
    _run([uv, "venv", "--python", f"{sys.version_info.major}.{sys.version_info.minor}", str(place)], log)
    install = ["--require-hashes", "--no-deps", "--compile-bytecode", "--python", python, "--requirements", str(lock)]
    _run([uv, "pip", "install", *install], log)
    (place / STAMP).write_text(lock_sha256)


def _uv() -> str:
    beside = Path(sys.prefix) / "bin" / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise SetupError(
            f"uv is neither in {beside.parent} nor in PATH; a release of another lock needs it to get its environment.",
            remedy="Run `make setup`.",
        )
    return found


def _run(command: list[str], log: Path) -> None:
    with log.open("ab") as output:
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    if status != 0:
        raise SetupError(
            f"`{' '.join(command[:3])}` for a release's environment ended with status {status}.",
            remedy=f"Its output is in {log}; it is tried again at the next start.",
        )
