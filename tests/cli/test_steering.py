"""weir start, stop, pause, restart, run, status against a real broker and control store."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from platform_core.cli.app import main
from platform_core.control import audit, drivers, releases, services, wanted
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.release import archive
from platform_core.settings import Settings
from tests.cli.conftest import Weir
from tests.conftest import Broker

pytestmark = pytest.mark.stack
V1 = ReleaseId("word_count", 1)


@pytest.fixture(autouse=True)
def fresh(store: ControlStore, broker: Broker) -> Iterator[None]:
    _ = broker
    yield
    with store.transaction() as cursor:
        cursor.execute("truncate weir.wanted, weir.drivers, weir.services, weir.audit")


@pytest.fixture
def supervised(store: ControlStore) -> Iterator[None]:
    """Somebody beats, as a supervisor does."""
    ended = threading.Event()

    def beat() -> None:
        services.beat(store, "supervisor", {})
        while not ended.wait(1):
            services.beat(store, "supervisor", {})

    thread = threading.Thread(target=beat)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_the_first_start_freezes_v1_makes_it_live_and_wants_it(
    weir: Weir, settings: Settings, store: ControlStore, supervised: None
) -> None:
    _ = supervised
    ran = weir("start", "word_count", "--reason", "first day")
    assert (ran.code, ran.out) == (0, "word_count@v1: wanted to run\n")
    assert releases.get(store, V1).state == "live"
    assert archive.verify(settings, V1).output.table == "word_count"
    asked = wanted.of(store, V1)
    assert asked is not None
    assert (asked.state, asked.reason) == ("run", "first day")
    assert weir("start", "word_count", "--json").json == [
        {"release": "word_count@v1", "wanted": "run", "generation": 1}
    ]
    assert len(releases.of_job(store, "word_count")) == 1


def test_a_start_that_nobody_carries_out_is_loud_and_noted(weir: Weir, store: ControlStore) -> None:
    ran = weir("start", "word_count")
    assert ran.code == 75
    assert "NOTHING SUPERVISES: the supervisor was never heard of. What you asked for is noted" in ran.err
    assert "Start it with `weir up`." in ran.err
    assert wanted.all(store)[V1].state == "run"


def test_stop_pause_and_restart_are_wanted_and_audited(weir: Weir, store: ControlStore, supervised: None) -> None:
    _ = supervised
    weir("start", "word_count")
    assert weir("stop", "--all").out == "word_count@v1: wanted to stop\n"
    assert weir("pause", "word_count@v1", "--reason", "lunch").code == 0
    assert weir("status", "--json").json["releases"][0]["state"] == "paused"
    assert weir("restart", "word_count").code == 0
    asked = wanted.all(store)[V1]
    assert (asked.state, asked.generation) == ("run", 2)
    actions = [line.action for line in audit.read(store, "word_count")]
    assert actions[:3] == ["restart", "pause", "stop"]


def test_a_job_that_is_not_there_is_answered_with_those_that_are(weir: Weir) -> None:
    ran = weir("start", "word_cuont")
    assert (ran.code, ran.out) == (64, "")
    says = "There is no job 'word_cuont'. Did you mean 'word_count'?\nJobs: "
    assert says in ran.err
    for command in ("restart", "stop", "pause", "run"):
        assert says in weir(command, "word_cuont").err
    never = weir("stop", "word_count")
    assert (never.code, "Job 'word_count' has no live release.\n`weir start word_count`" in never.err) == (64, True)
    assert weir("stop", "word_count@v9").code == 64


def test_waiting_ends_when_it_runs_or_was_given_up(weir: Weir, store: ControlStore, supervised: None) -> None:
    _ = supervised
    weir("start", "word_count")
    drivers.report(store, V1, state="running", generation=1)
    assert weir("start", "word_count", "--wait", "20").code == 0
    late = weir("stop", "word_count", "--wait", "0.1")
    assert (late.code, "word_count@v1 is running" in late.err) == (75, True)
    wanted.want(store, V1, "run", "ann")
    generation = wanted.all(store)[V1].generation
    drivers.report(store, V1, state="failed", given_up=True, reason="Java is missing", generation=generation + 1)
    failed = weir("start", "word_count", "--wait", "20")
    assert failed.code == 75
    assert "word_count@v1 does not run: Java is missing." in failed.err


def test_status_shows_what_runs_and_that_nothing_supervises(weir: Weir, store: ControlStore) -> None:
    assert "No job was started yet." in weir("status").out
    weir("start", "word_count")
    drivers.report(store, V1, state="failed", given_up=True, reason="Java is missing", restarts=5)
    ran = weir("status")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split()[:4] == ["job", "release", "state", "lag"]
    assert ran.out.splitlines()[2].split()[:3] == ["word_count", "v1", "failed"]
    assert "Java is missing" in ran.out
    assert "NOTHING SUPERVISES" in ran.err


def test_run_becomes_the_archived_driver(
    weir: Weir, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    weir("start", "word_count")
    became: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *given: became.append(given))  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(archive, "python_for", lambda *_: "python-of-its-lock")  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr("platform_core.settings.load", lambda *_: settings)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["run", "word_count"])
    assert ended.value.code == 0
    path, argv, environment = became[0]
    assert (path, argv[1:]) == ("python-of-its-lock", ["-P", "-m", "platform_core.archived.run", "word_count@v1"])
    assert environment["PYTHONPATH"] == str(settings.storage.archive(V1) / "code")
    assert os.getcwd() == str(settings.home)
