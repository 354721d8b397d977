"""`weir doctor`: is this machine fit, is the installation whole, does what should run run? What to do where not."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from platform_core.errors import WeirError
from platform_core.services import dagster, jars, java, kafka, ports, postgres, state
from platform_core.services.roster import external, managed
from platform_core.settings import ROOT, Settings
from platform_core.storage import Place

MEMORY_GB, ROOM_GB = 8, 5


@dataclass(frozen=True)
class Diagnosis:
    ok: bool
    what: str
    remedy: str = ""  # empty where nothing is to be done

    def __str__(self) -> str:
        return f"  ok    {self.what}" if self.ok else f"  WRONG {self.what}. {self.remedy}".rstrip()


def examine(settings: Settings) -> list[Diagnosis]:
    """Everything, even after the first that is wrong."""
    findings: list[Diagnosis] = []
    machine, installation = (_python, _packages, _java, _jars, _memory, _room), (_secrets, _services)
    for check in (*machine, *installation, _elsewhere, _places, _location):
        try:
            findings += check(settings)
        except WeirError as error:
            findings.append(Diagnosis(False, error.what, error.remedy))
        except OSError as error:
            findings.append(Diagnosis(False, f"{check.__name__.strip('_')} could not be examined: {error}."))
    return [Diagnosis(True, one.what) if one.ok else one for one in findings]


def _python(_: Settings) -> Iterator[Diagnosis]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Diagnosis(
        (3, 11) <= sys.version_info[:2] <= (3, 13), f"Python {version}", "Run `make setup` with Python 3.11 to 3.13."
    )


def _packages(_: Settings) -> Iterator[Diagnosis]:
    stamp, lock = Path(sys.prefix) / "weir-lock.sha256", ROOT / "requirements.lock"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    same = stamp.is_file() and stamp.read_text().strip() == wanted
    yield Diagnosis(
        same, "packages as requirements.lock says" if same else "packages are not those of requirements.lock", _SETUP
    )


_SETUP = "Run `make setup`."


def _java(_: Settings) -> Iterator[Diagnosis]:
    found = java.find()
    yield Diagnosis(True, f"Java {found.major} at {found.command}")


def _jars(settings: Settings) -> Iterator[Diagnosis]:
    wanted = jars.read_lock()
    bad = [jar for jar in wanted if not jar.whole(settings.jars) or not _proved(jar, settings.jars)]
    if bad:
        yield Diagnosis(
            False, f"{len(bad)} of {len(wanted)} jars are not as locked, the first is {bad[0].file}", _SETUP
        )
    else:
        yield Diagnosis(True, f"{len(wanted)} jars with the locked SHA-256")


def _proved(jar: jars.Jar, folder: Path) -> bool:
    return jars.digest(folder / jar.use / jar.file) == jar.sha256


def _memory(_: Settings) -> Iterator[Diagnosis]:
    total = psutil.virtual_memory().total / 1e9
    yield Diagnosis(
        total >= MEMORY_GB, f"{total:.0f} GB of memory", f"The demo wants {MEMORY_GB} GB; start fewer jobs at once."
    )


def _room(settings: Settings) -> Iterator[Diagnosis]:
    place = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    free = shutil.disk_usage(place).free / 1e9
    yield Diagnosis(free >= ROOM_GB, f"{free:.0f} GB free under {settings.home}", f"Make room; {ROOM_GB} GB is little.")


def _secrets(settings: Settings) -> Iterator[Diagnosis]:
    path = settings.home / "postgres.password"
    if path.is_file():
        closed = path.stat().st_mode & 0o077 == 0
        what = f"{path.name} is readable by {'its owner alone' if closed else 'others'}"
        yield Diagnosis(closed, what, f"Run `chmod 600 {path}`.")


def _services(settings: Settings) -> Iterator[Diagnosis]:
    board = state.read(settings.home)
    if not board.kept and not any(one.lives for one in board.services):
        yield from _ports_free(settings)
        return
    yield Diagnosis(board.kept, "the keeper runs" if board.kept else "the keeper has died", "Run `weir up`.")
    for service in managed(settings):
        one = board.of(service.name)
        phase = one.phase if one else "unknown"
        well = one is not None and one.lives and phase == "ready" and service.ready()
        reason = f": {one.reason}" if one and one.reason else "" if well else " and does not answer"
        yield Diagnosis(well, f"{service.name} is {phase}{reason}", f"Read {service.log}.")


def _ports_free(settings: Settings) -> Iterator[Diagnosis]:
    for service in managed(settings):
        for port in service.ports:
            busy = ports.taken(port)
            how = f"taken by {ports.describe(ports.holder(port))}" if busy else "free"
            what = f"port {port} of {service.name} is {how}"
            yield Diagnosis(not busy, what, f"Stop that process, or set another with {service.port_setting}.")


def _elsewhere(settings: Settings) -> Iterator[Diagnosis]:
    asks: dict[str, Callable[[], bool]] = {
        "postgres": lambda: postgres.reachable(settings, settings.postgres.database),
        "kafka": lambda: kafka.reachable(settings, 5),
    }
    for name in external(settings):
        where = settings.kafka.servers if name == "kafka" else f"{settings.postgres.host}:{settings.postgres.port}"
        well = asks[name]()
        what = f"{name} at {where} {'answers' if well else 'does not answer, or refuses us'}"
        yield Diagnosis(well, what, f"Start it, or correct profile {settings.profile!r}.")


def _places(settings: Settings) -> Iterator[Diagnosis]:
    """A Spark cluster, and folders for tables and checkpoints, where the profile names its own."""
    master = settings.spark.master
    if master.startswith("spark://"):
        host, _, port = master.removeprefix("spark://").partition(",")[0].rpartition(":")
        well = ports.answers(int(port), host)
        what = f"Spark's master at {master} {'answers' if well else 'does not answer'}"
        yield Diagnosis(well, what, f"Start it, or correct profile {settings.profile!r}.")
    for name, place in (("warehouse", settings.warehouse), ("checkpoints", settings.checkpoints)):
        path = Place(place).path if place else None
        if path is not None:
            there = next(folder for folder in (path, *path.parents) if folder.exists())
            well = os.access(there, os.W_OK)
            what = f"{name} in {place} {'can' if well else 'cannot'} be written"
            yield Diagnosis(well, what, f"Let us write {there}, or name another place in profile {settings.profile!r}.")


def _location(settings: Settings) -> Iterator[Diagnosis]:
    if settings.dagster.managed and dagster.answers(settings):
        trouble = dagster.location_trouble(settings)
        yield Diagnosis(not trouble, f"Dagster's code location {trouble or 'loads'}", "Read logs/dagster-code.log.")
