"""Waiting for what was asked for: what is told meanwhile, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from platform_core.cli import releasing
from platform_core.control import drivers, releases, services, wanted
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.errors import BatchFailed, ServiceUnavailable
from platform_core.names import ReleaseId
from platform_core.operations import wait
from tests.cli.conftest import Weir
from tests.control.test_catch_up import batches, made
from tests.control.words import until
from tests.cutover.words import ask, pair

pytestmark = pytest.mark.stack
V1, V2 = ReleaseId("stock_stats", 1), ReleaseId("stock_stats", 2)


@pytest.fixture(autouse=True)
def candidate(store: ControlStore) -> Iterator[None]:
    """It has read a quarter of what the live release has."""
    services.beat(store, "supervisor", {})
    made(store, V1, "live")
    made(store, V2, "replaying", {"t": {0: 0}})
    batches(store, V1, {"t": {0: 4_000}})
    batches(store, V2, {"t": {0: 500}}, {"t": {0: 1_000}})
    wanted.want(store, V2, "run", "ann")
    yield
    with store.transaction() as cursor:
        cursor.execute("truncate weir.services, weir.positions, weir.progress, weir.wanted, weir.drivers, weir.leases")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(wait, "_TELL_SECONDS", 0.0)
    return lines


@pytest.fixture
def waiting(store: ControlStore, said: list[str]) -> Iterator[Future[None]]:
    _ = said
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(wait.for_replay, store, V2, said.append)
        releases.set_state(store, V2, "retired", "the test is over")


def test_a_wait_tells_how_far_the_replay_is_until_it_follows(
    store: ControlStore, said: list[str], waiting: Future[None]
) -> None:
    until(lambda: said)
    assert said == [
        "stock_stats@v2 waiting: replay 25 % done, 3,000 records left, 50 records/s, can be live in about 60 s"
    ]
    releases.set_state(store, V2, "following", "it is there")
    waiting.result(20)


def test_a_wait_ends_when_the_candidate_fails_or_is_stopped(store: ControlStore, waiting: Future[None]) -> None:
    drivers.report(store, V2, state="failed", given_up=True, reason="Java is missing")
    with pytest.raises(BatchFailed, match="stock_stats@v2 does not replay: failed, Java is missing"):
        waiting.result(20)
    drivers.report(store, V2, state="stopped", given_up=False)
    wanted.want(store, V2, "stop", "bob")
    with pytest.raises(BatchFailed, match="stock_stats@v2 does not replay: stopped, by bob"):
        wait.for_replay(store, V2, print)


def test_a_wait_ends_where_nothing_supervises(store: ControlStore) -> None:
    with store.transaction() as cursor:
        cursor.execute("truncate weir.services")
    with pytest.raises(ServiceUnavailable, match="NOTHING SUPERVISES"):
        wait.for_replay(store, V2, print)


def test_ctrl_c_leaves_the_replay_alone_and_says_so(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wait.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        releasing.replayed(releases.get(store, V2), store)
    assert "stock_stats@v2 replays on; `weir status stock_stats` shows how far it is.\n" in capsys.readouterr().err


def test_a_wait_for_a_cutover_outlives_a_control_store_that_is_away(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pair(store, ReleaseId("waited_for", 1))
    found, told, away = ask(one), list[str](), [ServiceUnavailable("Control store: away.")]

    def get(_: ControlStore, cutover: int) -> Cutover:
        if away:
            raise away.pop()
        return protocol.abort(store, cutover, "changed my mind")

    monkeypatch.setattr(protocol, "get", get)
    monkeypatch.setattr(wait.time, "sleep", lambda _: None)
    ended = wait.for_cutover(store, found, told.append)
    assert ended.phase == "aborted"
    waits = f"cutover {found.id}: requested, waits for {one.old.release} to pause after its batch"
    assert told[0].endswith(waits)
    assert told[1] == "Control store: away. Waiting for it."
    assert told[2].endswith(f"cutover {found.id}: aborted, changed my mind")
    with pytest.raises(BatchFailed, match=r"was given up: changed my mind\. Nothing has changed\."):
        wait.refuse_aborted(ended)


def test_status_shows_how_far_a_replay_is(weir: Weir) -> None:
    shown = weir("status", "stock_stats")
    line = next(line for line in shown.out.splitlines() if " v2 " in line)
    assert line.endswith("replay 25 % done, 3,000 records left, 50 records/s, can be live in about 60 s")
    told = {one["release"]: one["catch_up"] for one in weir("status", "--json").json["releases"]}
    assert (told["stock_stats@v1"], told["stock_stats@v2"]["share"], told["stock_stats@v2"]["seconds"]) == (
        None,
        0.25,
        60,
    )
