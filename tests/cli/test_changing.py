"""weir cutover, rollback, retire, history: what they print, refuse, and end with."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from platform_core.control import comparisons, drivers, services
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.names import ReleaseId
from tests.cli.conftest import Ran, Weir
from tests.control.words import until
from tests.cutover.words import Pair, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    """A candidate that every gate lets pass."""
    made = pair(store, ReleaseId(f"changed_{next(_jobs)}", 1))
    made.new.commit(10)
    drivers.report(store, made.new.release, state="running")
    verdict(store, made, passed=True)
    return made


def verdict(store: ControlStore, one: Pair, *, passed: bool) -> None:
    comparisons.keep(
        store,
        (one.old.release, 1),
        (one.new.release, 1),
        one.new.at,
        passed=passed,
        reasons=() if passed else ("3 keys changed in avg_price",),
        notes=(),
        figures={},
        seconds=0.1,
        by="a test",
    )


@pytest.fixture
def supervised(store: ControlStore) -> Iterator[None]:
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
    with store.transaction() as cursor:
        cursor.execute("truncate weir.services")


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def asked(store: ControlStore, one: Pair) -> Cutover:
    until(lambda: protocol.of_release(store, one.old.release), 60)
    found = protocol.of_release(store, one.old.release)
    assert found is not None
    return found


def carry(store: ControlStore, one: Pair, found: Cutover) -> None:
    """Drivers and supervisor."""
    here, there = (one.old, one.new) if found.kind == "cutover" else (one.new, one.old)
    here.hold(found)
    there.commit(here.at.offsets["t"][0])
    there.align(found)
    protocol.flip(store, found.id)
    there.swap(found)


def test_a_cutover_and_its_way_back_are_followed_phase_by_phase(
    weir: Weir, store: ControlStore, one: Pair, supervised: None, background: ThreadPoolExecutor
) -> None:
    job, _ = one.old.release.job, supervised
    run: Future[Ran] = background.submit(weir, "cutover", job, "--reason", "averages in cents")
    carry(store, one, asked(store, one))
    ran = run.result(60)
    assert (ran.code, one.live) == (0, one.new.release)
    assert ran.out.startswith(f"{one.table}: shows {one.new.release} since cutover ")
    assert f"requested, waits for {one.old.release} to pause after its batch" in ran.err
    assert ran.err.rstrip().endswith(": swapped")
    again = weir("cutover", job, "--json")
    assert (again.code, again.json["phase"], again.json["moves"][0]["new"]) == (0, "swapped", str(one.new.release))
    run = background.submit(weir, "rollback", job, "--json")
    carry(store, one, asked(store, one))
    assert run.result(60).json["kind"] == "rollback"
    assert one.live == one.old.release
    lines = weir("history", job, "--json").json
    phases = [(line["action"], line["detail"]["phase"]) for line in lines if "phase" in line["detail"]]
    steps = ["requested", "held", "aligned", "flipped", "swapped"]
    assert phases == [(kind, phase) for kind in ("cutover", "rollback") for phase in steps]


def test_what_was_given_up_is_told_and_may_be_asked_again(
    weir: Weir, store: ControlStore, one: Pair, supervised: None, background: ThreadPoolExecutor
) -> None:
    _ = supervised
    run: Future[Ran] = background.submit(weir, "cutover", one.old.release.job)
    protocol.abort(store, asked(store, one).id, "the candidate broke")
    ran = run.result(60)
    assert ran.code == 75
    assert "was given up: the candidate broke. Nothing has changed." in ran.err
    assert one.live == one.old.release


def test_gates_refuse_and_nothing_was_asked_for(weir: Weir, store: ControlStore, one: Pair, supervised: None) -> None:
    _ = supervised
    verdict(store, one, passed=False)
    ran = weir("cutover", one.old.release.job, "--json")
    assert ran.code == 64
    told = json.loads(ran.err)
    assert told["what"] == (
        f"No cutover: {one.new.release} differs from {one.old.release}: 3 keys changed in avg_price."
    )
    assert protocol.of_release(store, one.old.release) is None


def test_while_nothing_supervises_nothing_is_asked_for(weir: Weir, store: ControlStore, one: Pair) -> None:
    ran = weir("cutover", one.old.release.job)
    assert ran.code == 75
    assert "NOTHING SUPERVISES" in ran.err
    assert protocol.of_release(store, one.old.release) is None


@pytest.mark.parametrize("words", [("cutover",), ("rollback",), ("compare",), ("reset", "--from", "earliest", "--yes")])
def test_a_name_that_nobody_knows_is_answered_with_the_nearest(
    weir: Weir, store: ControlStore, supervised: None, words: tuple[str, ...]
) -> None:
    _ = store, supervised
    command, *options = words
    ran = weir(command, "stok_stats", *options)
    assert (ran.code, "There is no job 'stok_stats'. Did you mean 'stock_stats'?" in ran.err) == (64, True)


def test_a_release_that_is_needed_is_not_retired(weir: Weir, one: Pair) -> None:
    ran = weir("retire", str(one.old.release))
    assert ran.code == 64
    assert f"{one.old.release} cannot be retired: it is the live release of {one.table}." in ran.err


def test_a_reset_asks_first(weir: Weir, one: Pair) -> None:
    ran = weir("reset", one.old.release.job, "--from", "earliest")
    assert ran.code != 0
    assert "Go on?" in ran.out + ran.err
