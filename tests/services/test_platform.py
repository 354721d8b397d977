"""The whole platform, its processes killed for real."""

from __future__ import annotations

import io
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from rich.console import Console

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.errors import SetupError
from platform_core.services import doctor, kafka, kept, ports, postgres, state
from platform_core.services.down import down
from platform_core.services.up import up
from platform_core.settings import Settings, load
from tests.processes import signal_each

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]


def settings_in(home: Path) -> Settings:
    first = ports.free(5)[0]
    chosen = {"KAFKA": first, "POSTGRES": first + 2, "DAGSTER": first + 3}
    return load(environment={"WEIR_HOME": str(home), **{f"WEIR_{k}__PORT": str(v) for k, v in chosen.items()}})


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    one = settings_in(tmp_path_factory.mktemp("platform"))
    yield one
    down(one, quiet())


@pytest.fixture
def platform(settings: Settings) -> Settings:
    """Up and whole, whatever the test before did to it."""
    up(settings, quiet())
    return settings


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def until(condition: Callable[[], bool], what: str, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds:.0f} s: {what}"
        time.sleep(0.1)


def owner_of(settings: Settings, service: str) -> Owner:
    one = state.read(settings.home).of(service)
    assert one is not None
    assert one.owner is not None, f"{service} is {one.phase}: {one.reason}"
    return one.owner


def back(settings: Settings, service: str, killed: Owner) -> None:
    def ready() -> bool:
        one = state.read(settings.home).of(service)
        return one is not None and one.phase == "ready" and one.owner != killed

    until(ready, f"{service} is back")


def owners(settings: Settings) -> dict[str, Owner]:
    return {one.name: owner_of(settings, one.name) for one in state.read(settings.home).services}


def test_everything_is_ready_and_nothing_is_wrong(platform: Settings) -> None:
    assert {one.name: one.phase for one in state.now(platform.home)} == dict.fromkeys(
        ("postgres", "kafka", "supervisor", "dagster-code", "dagster-runs", "dagster-web", "dagster-daemon"), "ready"
    )
    assert [str(finding) for finding in doctor.examine(platform) if not finding.ok] == []


def test_all_servers_listen_on_loopback_alone(platform: Settings) -> None:
    for one in kept.belonging(platform.home):
        for link in one.net_connections("tcp"):
            if link.status == psutil.CONN_LISTEN:
                assert link.laddr.ip in ("127.0.0.1", "::1", "::ffff:127.0.0.1"), (one.cmdline(), link.laddr)


def test_no_password_stands_in_a_process_list_or_a_log(platform: Settings) -> None:
    secret = platform.password()
    assert not [one.pid for one in kept.belonging(platform.home) if secret in " ".join(one.cmdline())]
    assert not [path for path in platform.storage.logs.iterdir() if secret in path.read_text(errors="replace")]
    assert secret not in (platform.home / "dagster" / "dagster.yaml").read_text()


@pytest.mark.parametrize("service", ["kafka", "postgres", "supervisor", "dagster-code", "dagster-runs", "dagster-web"])
def test_a_killed_service_is_started_again(platform: Settings, service: str) -> None:
    killed = owner_of(platform, service)
    killed.signal(signal.SIGKILL)
    back(platform, service, killed)
    assert kafka.reachable(platform, 5)
    assert postgres.reachable(platform)


def test_a_killed_keeper_leaves_its_services_and_the_next_one_adopts_them(platform: Settings) -> None:
    before, board = owners(platform), state.read(platform.home)
    assert board.keeper is not None
    board.keeper.signal(signal.SIGKILL)
    until(lambda: not state.read(platform.home).kept, "the keeper is gone")
    assert {one.phase for one in state.now(platform.home)} == {"unkept"}
    up(platform, quiet())
    assert owners(platform) == before


def test_after_a_power_cut_the_platform_comes_up_with_its_data(platform: Settings) -> None:
    with postgres.connect(platform) as link:
        link.execute("create table if not exists kept_over_a_power_cut (n int)")
    signal_each((*kept.belonging(platform.home), *everything(platform)), signal.SIGKILL)
    until(lambda: not state.read(platform.home).kept, "the keeper is gone")
    up(platform, quiet())
    with postgres.connect(platform) as link:
        link.execute("select n from kept_over_a_power_cut")


def everything(settings: Settings) -> list[psutil.Process]:
    """Postgres hides its environment: it is found by its session."""
    return [one for owner in owners(settings).values() for one in kept.in_session(owner.pid, settings.home)]


def test_two_platforms_stand_side_by_side(platform: Settings, tmp_path: Path) -> None:
    second = settings_in(tmp_path / "second")
    second = second.model_copy(update={"dagster": second.dagster.model_copy(update={"managed": False})})
    try:
        up(second, quiet())
        down(second, quiet())
        assert kafka.reachable(platform, 5)
    finally:
        down(second, quiet())


def test_a_taken_port_is_told_before_anything_is_started(tmp_path: Path) -> None:
    wanted = settings_in(tmp_path / "third")
    with socket.socket() as held:
        held.bind(("127.0.0.1", wanted.postgres.port))
        held.listen()
        with pytest.raises(SetupError, match=rf"port {wanted.postgres.port} is taken by process {os.getpid()} \("):
            up(wanted, quiet())
    assert kept.belonging(wanted.home) == []
    assert not (wanted.home / "postgres").exists()


def test_down_leaves_no_process_and_up_finds_the_old_state(platform: Settings) -> None:
    processes = everything(platform)
    down(platform, quiet())
    assert [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    assert kept.belonging(platform.home) == []
    assert {one.phase for one in state.now(platform.home)} == {"stopped"}
    with pytest.raises(psycopg.OperationalError):
        postgres.connect(platform)
    up(platform, quiet())
    ControlStore.open(platform).migrate()


def test_down_after_a_killed_keeper_leaves_no_process(platform: Settings) -> None:
    processes, board = everything(platform), state.read(platform.home)
    assert board.keeper is not None
    board.keeper.signal(signal.SIGKILL)
    down(platform, quiet())
    assert [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    assert kept.belonging(platform.home) == []
