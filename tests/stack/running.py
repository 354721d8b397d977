"""A platform's processes in the hands of a test: started for real, hurt for real, and all gone at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from platform_core.control import leases
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.release.archive import command_for
from platform_core.release.contents import copy
from platform_core.release.first import first_release
from platform_core.services import ports, postgres, process
from platform_core.services.service import Service, begin, start
from platform_core.settings import ROOT, Settings, load
from platform_core.streaming.checkpoint.files import Checkpoint
from tests.processes import signal_each

PATIENCE = 600.0  # seconds for anything that a quiet machine does in a few: nobody waits longer than needed


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE, about: Path | None = None) -> None:
    """Returns when the condition holds; fails with `what`, and the last words of a log, when it does not in time."""
    if not process.until(lambda: bool(condition()), seconds):
        words = about.read_text(errors="replace")[-3000:] if about and about.is_file() else ""
        raise AssertionError(f"not within {seconds:.0f} s: {what}\n{words}")


@dataclass
class Running:
    """A process in a session of its own, with what it started."""

    name: str
    child: subprocess.Popen[bytes]
    log: Path
    began: float = field(default_factory=time.monotonic)
    _from: int = 0

    @property
    def alive(self) -> bool:
        return self.child.poll() is None

    @property
    def members(self) -> list[psutil.Process]:
        """Every living process of its session, also when it is dead itself."""
        return [one for one in psutil.process_iter() if _session(one.pid) == self.child.pid and _lives(one)]

    def kill(self) -> None:
        """SIGKILL to the process alone: what it started has to find out by itself."""
        self.child.kill()
        self.child.wait(30)

    def kill_all(self) -> None:
        """As a power cut: it and all that it started, at once."""
        signal_each(self.members, signal.SIGKILL)
        self.child.wait(30)

    def freeze(self) -> None:
        signal_each(self.members, signal.SIGSTOP)

    def thaw(self) -> None:
        signal_each(self.members, signal.SIGCONT)

    def ask_to_end(self) -> None:
        self.child.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """As asked; a generator sends until it has ended."""
        self.ask_to_end()
        return self.exit_code()

    def exit_code(self, seconds: float = PATIENCE) -> int:
        until(lambda: not self.alive, f"{self.name} ends", seconds, self.log)
        return self.child.returncode

    def events(self, named: str = "") -> list[dict[str, Any]]:
        """What it said since it began, of one kind or all."""
        with self.log.open("rb") as file:
            file.seek(self._from)
            lines = file.read().decode(errors="replace").splitlines()
        said = [json.loads(line) for line in lines if line.startswith('{"at":')]
        return [one for one in said if named in ("", one["event"])]


class Platform:
    """One home: its settings, its control store, and the processes that a test began there."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._processes: list[Running] = []

    @cached_property
    def store(self) -> ControlStore:
        return ControlStore.open(self.settings)

    def spawn(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> Running:
        place = log or self.settings.storage.logs / f"{name}.log"
        size = place.stat().st_size if place.exists() else 0
        environment = self.settings.child_environment() if env is None else env
        running = Running(name, process.spawn(command, environment, place, self.settings.home), place, _from=size)
        self._processes.append(running)
        return running

    def serve(self, service: Service, wait: bool = True) -> Running:
        running = Running(service.name, start(service) if wait else begin(service), service.log)
        self._processes.append(running)
        return running

    def service(self, name: str) -> Running:
        """The newest of that name."""
        return next(one for one in reversed(self._processes) if one.name == name)

    def everything(self) -> list[psutil.Process]:
        """Every living process of this home, whoever began it."""
        own = {one.pid: one for begun in self._processes for one in begun.members}
        home = str(self.settings.home)
        return [one for one in psutil.process_iter() if one.pid in own or (_home_of(one) == home and _lives(one))]

    def power_cut(self, sparing: Sequence[Running] = ()) -> None:
        """SIGKILL to everything at once."""
        spared = {one.pid for running in sparing for one in running.members}
        struck = [one for one in self.everything() if one.pid not in spared]
        signal_each(struck, signal.SIGKILL)
        psutil.wait_procs(struck, timeout=30)

    def freeze(self, *jobs: str) -> list[ReleaseId]:
        """v1 of each job, from the settings' tree."""
        return [first_release(job, self.settings, self.store, "a test").id for job in jobs]

    def drive(self, release: ReleaseId, dying: Sequence[str] = ()) -> Running:
        """The release's driver, as `weir run` starts it; `dying` is a place of `faults/dying.py` and a batch."""
        argv, env = command_for(self.settings, release)
        if dying:
            argv = [argv[0], str(ROOT / "tests" / "faults" / "dying.py"), *dying, str(release)]
        name = f"driver-{release.group}"
        number = sum(one.name == name for one in self._processes) + 1  # two at once must not share a log
        return self.spawn(name, argv, env, self.settings.storage.logs / f"{name}-{number}.log")

    def kill_driver(self, release: ReleaseId) -> None:
        """SIGKILL to whoever holds its lease."""
        held = leases.current(self.store, leases.driver_lease(release))
        assert held is not None, f"{release} has no driver"
        os.kill(held.owner.pid, signal.SIGKILL)

    def supervise(self) -> Running:
        env = {**self.settings.child_environment(), "PYTHONPATH": str(ROOT)}
        return self.spawn("supervisor", [sys.executable, "-m", "platform_core.supervise"], env)

    def generate(self, kind: str, *options: str) -> Running:
        """Load, from the generators of the settings' tree, so that it reaches that tree's topics."""
        env = {**self.settings.child_environment(), "PYTHONPATH": str(self.settings.root)}
        command = [
            sys.executable,
            "-m",
            "ingest.generators",
            kind,
            *options,
            "--bootstrap",
            self.settings.kafka.servers,
        ]
        return self.spawn(f"generator-{kind}", command, env)

    def position(self, release: ReleaseId) -> Position | None:
        """Where the release's newest commit says that it is."""
        try:
            commits = DeltaTable(self.settings.storage.table(release).uri).history(10)
        except TableNotFoundError:
            return None
        return next((Position.from_json(one["userMetadata"]) for one in commits if "userMetadata" in one), None)

    def batch(self, release: ReleaseId) -> int:
        """The table's newest batch, -1 without."""
        position = self.position(release)
        return -1 if position is None else position.batch

    def checkpoint(self, release: ReleaseId) -> Checkpoint:
        return Checkpoint(self.settings.storage.checkpoint(release).uri)

    def works(self, *releases: ReleaseId, batches: int = 2, running: Running | None = None) -> None:
        """Returns when each of them has committed so many more batches."""
        for release, before in [(one, self.batch(one)) for one in releases]:
            log = running.log if running else self.settings.storage.logs / f"driver-{release.group}.log"
            until(lambda r=release, b=before: self.batch(r) >= b + batches, f"{release} commits batches", about=log)

    def end(self) -> None:
        signal_each(self.everything(), signal.SIGCONT)
        self.power_cut()
        if "store" in vars(self):
            self.store.close()


@contextmanager
def a_platform(settings: Settings, own: Sequence[Callable[[Settings], Service]] = ()) -> Generator[Platform]:
    """A home with the services that it starts itself; everything has gone afterwards, whatever happened."""
    made = Platform(with_first_compiler(settings))
    with ExitStack() as held:
        held.callback(made.end)
        for service in own:
            made.serve(service(made.settings))
        made.store.migrate()
        yield made


def with_first_compiler(settings: Settings) -> Settings:
    """In a life of minutes the second compiler takes more than it gives back."""
    return settings.model_copy(
        update={"spark": settings.spark.model_copy(update={"java_options": "-XX:TieredStopAtLevel=1"})}
    )


@contextmanager
def a_home(folder: Path, prefix: str, servers: str, **environment: str) -> Generator[Platform]:
    """With a Postgres of its own, and on a broker that others share: the topics of its tree have a prefix."""
    where = {
        "WEIR_HOME": str(folder / "home"),
        "WEIR_KAFKA__BOOTSTRAP": servers,
        "WEIR_POSTGRES__PORT": str(ports.free(1)[0]),
    }
    settings = load(environment={**where, **environment})
    own_tree = settings.model_copy(update={"root": tree_of_its_own(folder / "tree", prefix)})
    with a_platform(own_tree, own=[postgres.server]) as running:
        yield running


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _home_of(one: psutil.Process) -> str | None:
    """Postgres writes over its environment; it is found by its session instead."""
    try:
        return one.environ().get("WEIR_HOME")
    except psutil.Error:
        return None


def _lives(one: psutil.Process) -> bool:
    try:
        return one.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def tree_of_its_own(folder: Path, prefix: str) -> Path:
    """The tree's code, whose topics have a prefix: two homes on one broker do not meet."""
    copy(ROOT, folder)
    topics = folder / "ingest" / "topics.py"
    topics.write_text(topics.read_text().replace('\n    name="', f'\n    name="{prefix}-'))
    return folder


def job_in(tree: Path, name: str) -> StreamingJob:
    """The job as that tree declares it; this process may have imported another tree's of the same name."""
    kept = {module: sys.modules.pop(module) for module in list(sys.modules) if _is_declared_in_trees(module)}
    sys.path.insert(0, str(tree))
    try:
        from platform_core.declare.discover import load_job

        return load_job(name, tree)
    finally:
        sys.path.remove(str(tree))
        for module in [module for module in sys.modules if _is_declared_in_trees(module)]:
            del sys.modules[module]
        sys.modules.update(kept)


def _is_declared_in_trees(module: str) -> bool:
    return module.split(".")[0] in ("ingest", "streaming_jobs")
