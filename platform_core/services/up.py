"""`weir up`: the keeper and all services, each told as it becomes ready."""

from __future__ import annotations

import shutil
import sys
import time

from rich.console import Console

from platform_core.control.owners import Owner
from platform_core.errors import ServiceUnavailable, SetupError
from platform_core.services import jars, java, kafka, kept, ports, postgres, process, state
from platform_core.services.roster import external, managed
from platform_core.services.service import Service, tail
from platform_core.services.state import State
from platform_core.settings import Settings

READY_SECONDS = 600.0  # a cold start takes 60 on two cores, minutes when others want them too
HOPELESS = 3  # failures in a row after which `up` reports instead of waiting
ROOM_MB = 1000


def up(settings: Settings, console: Console, only: frozenset[str] | None = None) -> None:
    """Starts everything. Returns when all, or those named, are ready; raises with service, cause and log otherwise."""
    services = managed(settings)
    _prepare_external(settings)
    if not state.read(settings.home).kept:
        examine(settings, services)
        _start_keeper(settings)
    _wait(settings, {one.name for one in services if only is None or one.name in only}, console)


def examine(settings: Settings, services: list[Service]) -> None:
    """What would make a start fail, said before anything is started."""
    java.find()
    lacking = jars.missing(jars.read_lock(), settings.jars)
    if lacking:
        raise SetupError(
            f"{settings.jars} lacks {len(lacking)} jars, as {lacking[0].file}.", remedy="Run `make setup`."
        )
    settings.home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.home).free // 1_000_000
    if free < ROOM_MB:
        raise SetupError(f"{settings.home} has {free} MB free, weir wants {ROOM_MB}.", remedy="Make room.")
    board = state.read(settings.home)
    for service in services:
        known = board.of(service.name)
        if known is None or not known.lives:
            ports.require_free(service.name, service.ports, service.port_setting)


def _start_keeper(settings: Settings) -> None:
    command = (sys.executable, "-m", "platform_core.services.keeper")
    env = settings.child_environment() | {"PYTHONPATH": str(settings.root)} | dict(kept.marks(settings.home, "keeper"))
    log = settings.storage.logs / "keeper.log"
    child = process.spawn(command, env, log, settings.home)
    me = Owner.of(child.pid)

    def decided() -> bool:
        return child.poll() is not None or state.read(settings.home).keeper == me

    if not process.until(decided, 30) or child.poll() is not None:
        raise ServiceUnavailable(f"The keeper did not start.{tail(log)}", remedy=f"Read {log}.")


def _prepare_external(settings: Settings) -> None:
    for name in external(settings):
        reachable = postgres.reachable(settings) if name == "postgres" else kafka.reachable(settings, 10)
        if not reachable:
            raise ServiceUnavailable(
                f"{name} at {where(settings, name)} does not answer; profile {settings.profile!r} says it runs there.",
                remedy=f"Start it, correct the profile, or set WEIR_{name.upper()}__MANAGED=true.",
            )
    if "postgres" in external(settings):
        postgres.create_databases(settings)


def where(settings: Settings, name: str) -> str:
    return settings.kafka.servers if name == "kafka" else f"{settings.postgres.host}:{settings.postgres.port}"


def _wait(settings: Settings, wanted: set[str], console: Console) -> None:
    began, told = time.monotonic(), dict[str, str]()
    while True:
        board = state.read(settings.home)
        for one in board.services:
            if told.get(one.name) != one.phase and one.name in wanted:
                told[one.name] = one.phase
                console.print(_line(one, time.monotonic() - began), highlight=False, markup=False, soft_wrap=True)
        _despair(board, wanted, time.monotonic() - began)
        if all(told.get(name) == "ready" for name in wanted):
            return
        time.sleep(0.1)


def _line(one: State, seconds: float) -> str:
    pid = f"  pid {one.owner.pid}" if one.owner else ""
    words = one.reason.splitlines()[0] if one.reason else ""
    return f"  {one.name:<15} {one.phase:<9} {seconds:5.1f} s  {one.address}{pid}  {words}".rstrip()


def _despair(board: state.Board, wanted: set[str], seconds: float) -> None:
    if not board.kept:
        raise ServiceUnavailable("The keeper has ended.", remedy="Read logs/keeper.log, then run `weir up` again.")
    for one in board.services:
        if one.name not in wanted or one.phase == "ready":
            continue
        if one.failures >= HOPELESS or seconds > READY_SECONDS:
            why = one.reason or f"still {one.phase} after {seconds:.0f} s"
            raise ServiceUnavailable(
                f"{one.name} does not come up: {why}",
                remedy=f"Read {one.log}. The keeper goes on trying; `weir down` ends that.",
            )
