"""A stage for real supervisors and small real drivers, with a control store of its own; nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from platform_core.control import drivers, services, wanted
from platform_core.control.drivers import DriverState
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import ROOT, Settings
from tests.conftest import Database
from tests.control.words import until

QUICK = {
    "WEIR_SUPERVISION__LEASE_SECONDS": "4",
    "WEIR_SUPERVISION__POLL_SECONDS": "0.1",
    "WEIR_SUPERVISION__GIVE_UP_AFTER": "3",
    "WEIR_SUPERVISION__BACKOFF_SECONDS": "0.2",
}


@dataclass
class Stage:
    settings: Settings
    store: ControlStore
    supervisors: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def supervisor(self) -> subprocess.Popen[bytes]:
        self.settings.storage.logs.mkdir(parents=True, exist_ok=True)
        with (self.settings.storage.logs / "supervisor.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.supervise.fake_supervisor"],
                env={**self.settings.child_environment(), "PYTHONPATH": str(ROOT)},
                stderr=log,
            )
        self.supervisors.append(process)
        return process

    def start(self, release: ReleaseId, behaviour: str = "run") -> None:
        (self.settings.home / f"{release.job}.behaviour").write_text(behaviour)
        wanted.want(self.store, release, "run", "ada")

    def notes(self, release: ReleaseId, kind: str) -> list[int]:
        """The pids that drivers noted: `started`, `ended` after their batch, or of a `child`."""
        path = self.settings.home / f"{release.job}.{kind}"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def driver(self, release: ReleaseId) -> DriverState:
        found = drivers.get(self.store, release)
        assert found is not None
        return found

    def runs(self, release: ReleaseId, *, other_than: int | None = None) -> int:
        """Waits until a driver runs; its pid."""
        until(lambda: self._running(release) not in (None, other_than), 60)
        return self._running(release) or 0

    def is_in(self, release: ReleaseId, state: drivers.State) -> DriverState:
        """Waits until the driver's row says so."""
        until(lambda: (row := drivers.get(self.store, release)) is not None and row.state == state, 60)
        return self.driver(release)

    def _running(self, release: ReleaseId) -> int | None:
        row = drivers.get(self.store, release)
        if row is None or row.state != "running" or row.owner is None or not row.owner.running:
            return None
        return row.owner.pid

    def leads(self, process: subprocess.Popen[bytes]) -> bool:
        beat = services.all(self.store).get("supervisor")
        return beat is not None and beat.detail["pid"] == process.pid

    def clear(self) -> None:
        for process in self.supervisors:
            process.kill()
            process.wait()
        until(self._none_left)
        self.store.close()

    def _none_left(self) -> bool:
        """Kills what works in this home, also drivers that a killed supervisor had begun the moment before."""
        left = [process for process in psutil.process_iter() if _home_of(process) == str(self.settings.home)]
        for process in left:
            Owner.of(process.pid).signal(signal.SIGKILL)
        return not left


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("WEIR_HOME")
    except psutil.Error:
        return None


def stage_on(settings: Settings) -> Stage:
    store = ControlStore.open(settings)
    store.migrate()
    return Stage(settings, store)


@pytest.fixture
def stage(postgres: Database, tmp_path: Path) -> Iterator[Stage]:
    made = stage_on(postgres.another(tmp_path, **QUICK))
    yield made
    made.clear()
