"""The keeper over small services of our own: what takes a platform minutes takes these a second."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from platform_core.services import keeper, keeping, process, state
from platform_core.services.keeping import wait_before
from platform_core.services.service import Service
from platform_core.services.state import State
from platform_core.settings import Settings, load

READY = "import pathlib, time, sys; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "logs").mkdir()
    return load(environment={"WEIR_HOME": str(tmp_path)})


def a_service(settings: Settings, name: str, program: str = READY, **changes: object) -> Service:
    sign = settings.home / f"{name}.ready"
    values: dict[str, object] = {
        "name": name,
        "command": (sys.executable, "-c", program, str(sign)),
        "environment": settings.child_environment,
        "prepare": lambda: sign.unlink(missing_ok=True),
        "ready": sign.exists,
        "log": settings.storage.logs / f"{name}.log",
        "cwd": settings.home,
        "stop_seconds": 5.0,
    }
    return Service(**(values | changes))  # pyright: ignore[reportArgumentType]


@contextmanager
def kept(settings: Settings, *services: Service) -> Generator[Callable[[str], State]]:
    stopping = threading.Event()
    thread = threading.Thread(target=keeper.keep, args=(settings, list(services), stopping))
    thread.start()
    try:
        yield lambda name: state.read(settings.home).of(name) or State(name)
    finally:
        stopping.set()
        thread.join(60)
    assert not thread.is_alive()


def until(condition: Callable[[], bool], what: str) -> None:
    assert process.until(condition, 60), what


def test_the_wait_before_a_restart_doubles_up_to_half_a_minute() -> None:
    assert [wait_before(failures) for failures in (0, 1, 2, 5, 6, 50)] == [0, 1, 2, 16, 30, 30]


def test_a_service_starts_after_what_it_needs_and_stops_before_it(settings: Settings) -> None:
    below, above = a_service(settings, "below"), a_service(settings, "above", needs=("below",))
    with kept(settings, above, below) as told:
        until(lambda: told("above").phase == "ready", "both are ready")
        assert told("below").since <= told("above").since
    ended = {one.name: one for one in state.read(settings.home).services}
    assert {one.phase for one in ended.values()} == {"stopped"}
    assert ended["above"].since <= ended["below"].since


def test_a_killed_service_is_back_with_its_restart_counted(settings: Settings) -> None:
    with kept(settings, a_service(settings, "one")) as told:
        until(lambda: told("one").phase == "ready", "ready")
        first = told("one").owner
        assert first is not None
        first.signal(signal.SIGKILL)
        until(lambda: told("one").phase == "ready" and told("one").owner != first, "ready again")
        assert told("one").restarts == 1


def test_a_service_that_cannot_start_is_tried_again_and_its_last_words_are_kept(settings: Settings) -> None:
    failing = a_service(settings, "one", "print('cannot bind', flush=True); raise SystemExit(3)")
    with kept(settings, failing) as told:
        until(lambda: told("one").failures >= 2, "tried twice")
        assert "ended at its start" in told("one").reason or told("one").phase == "starting"
        until(lambda: "cannot bind" in told("one").reason, "its words")


def test_a_service_that_never_becomes_ready_is_ended_and_tried_again(settings: Settings) -> None:
    silent = a_service(settings, "one", "import time; time.sleep(600)", ready_seconds=0.5)
    with kept(settings, silent) as told:
        until(lambda: "was not ready after" in told("one").reason, "given up once")


def test_a_service_above_its_memory_is_started_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.1)
    greedy = a_service(settings, "one", "hoard = bytearray(80_000_000);" + READY, memory_mb=60)
    with kept(settings, greedy) as told:
        until(lambda: "its bound is 60 MB" in told("one").reason, "bounded")


def test_a_service_that_runs_and_does_not_answer_is_shown_as_silent_and_left_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.1)
    with kept(settings, a_service(settings, "one")) as told:
        until(lambda: told("one").phase == "ready", "ready")
        first = told("one").owner
        (settings.home / "one.ready").unlink()
        until(lambda: told("one").phase == "silent", "silent")
        (settings.home / "one.ready").touch()
        until(lambda: told("one").phase == "ready", "answers again")
        assert (told("one").owner, told("one").restarts) == (first, 0)


def test_a_service_that_ignores_the_request_to_stop_is_killed(settings: Settings) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + READY
    with kept(settings, a_service(settings, "one", deaf, stop_seconds=0.5)) as told:
        until(lambda: told("one").phase == "ready", "ready")
        owner = told("one").owner
    assert owner is not None
    assert not owner.running


def test_what_a_service_started_apart_ends_with_the_platform(settings: Settings) -> None:
    parent = (
        "import subprocess, sys;"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
    )
    with kept(settings, a_service(settings, "one", parent + READY)) as told:
        until(lambda: told("one").phase == "ready", "ready")
        assert len(keeping.kept.belonging(settings.home, "one")) == 2
    assert keeping.kept.belonging(settings.home) == []


def test_a_fault_of_the_keeper_itself_does_not_leave_a_service_without_one(settings: Settings) -> None:
    def broken() -> None:
        if not tries:
            tries.append(time.monotonic())
            raise KeyError("unforeseen")

    tries: list[float] = []
    with kept(settings, a_service(settings, "one", prepare=broken)) as told:
        until(lambda: told("one").phase == "ready", "ready at the second try")
        assert told("one").failures == 1
