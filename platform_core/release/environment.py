"""Environments of locks: the running one where its locks are the release's, else one built for them and kept."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platform_core.archived import protocol
from platform_core.errors import SetupError
from platform_core.release.contents import JARS_LOCK, LOCK
from platform_core.settings import Settings

STAMP = "weir-lock.sha256"  # written last: an environment without it was never finished
JARS = "weir-jars"


@dataclass(frozen=True)
class Locks:
    """What a release was frozen with, the code in whose archive the locks stand, and how that is entered."""

    code: Path
    protocol: int
    requirements_sha256: str
    jars_sha256: str

    @property
    def name(self) -> str:
        return f"{self.requirements_sha256[:16]}-{self.jars_sha256[:16] or 'no-jars'}"


def python_of(settings: Settings, locks: Locks) -> Path:
    """An interpreter with the packages and jars of the locks; building one takes minutes, finding it none."""
    running = Path(sys.prefix)
    if _fits(running, locks):
        return running / "bin" / "python"
    place = settings.storage.environments / locks.name
    with _alone(place):
        if not _fits(place, locks):
            _build(place, locks, settings)
    return place / "bin" / "python"


def _fits(folder: Path, locks: Locks) -> bool:
    """Made from the same packages, whole, and with every jar; a jar's name carries its version."""
    stamp, jars = folder / STAMP, locks.code / JARS_LOCK
    if not stamp.is_file() or stamp.read_text().strip() != locks.requirements_sha256:
        return False
    wanted = json.loads(jars.read_text()) if jars.is_file() else []
    return all((folder / JARS / jar["use"] / jar["file"]).is_file() for jar in wanted)


@contextmanager
def _alone(place: Path) -> Generator[None]:
    """Two releases of one lock may start at once; the second waits and finds the environment there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(place: Path, locks: Locks, settings: Settings) -> None:
    """By pip, which obeys the machine's mirrors and certificates; uv is faster and would need them told again."""
    log = settings.storage.logs / f"environment-{locks.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    python, environment = str(place / "bin" / "python"), {**settings.child_environment(), "PYTHONPATH": ""}
    _run([sys.executable, "-m", "venv", str(place)], environment, log)
    install = ["-m", "pip", "install", "--require-hashes", "--no-deps", "--requirement", str(locks.code / LOCK)]
    _run([python, *install], environment, log)
    if (locks.code / JARS_LOCK).is_file():
        _share_jars(place / JARS)
        archived = {**environment, "PYTHONPATH": str(locks.code), "PYTHONDONTWRITEBYTECODE": "1"}
        fetching = protocol.command(python, locks.protocol, "jars", str(log))  # proves, fetches what is missing
        _run(fetching, archived, log)
    (place / STAMP).write_text(locks.requirements_sha256)


def _share_jars(target: Path) -> None:
    """Most jars of two locks are the same files: linked, not fetched."""
    source = Path(sys.prefix) / JARS
    for jar in source.glob("*/*.jar"):
        (target / jar.parent.name).mkdir(parents=True, exist_ok=True)
        try:
            os.link(jar, target / jar.parent.name / jar.name)
        except OSError:  # another file system
            shutil.copy2(jar, target / jar.parent.name / jar.name)


def _run(command: list[str], environment: dict[str, str], log: Path) -> None:
    with log.open("ab") as output:
        ran = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False)
    if ran.returncode != 0:
        raise SetupError(
            f"A release's environment: `{' '.join(command[1:4])}` ended with status {ran.returncode}.",
            remedy=f"Its output is in {log}; it is tried again at the next start.",
        )
