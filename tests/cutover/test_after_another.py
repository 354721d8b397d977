"""A cutover that a driver did not see the end of, and the next one: what a property test found, each as a fact.

The first is the whole of what `-k fates --hypothesis-seed=77` found at commit 186ad77, where the drivers of the test,
and not those of the platform, took the one for the other.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import pytest

from platform_core.control import aliases, leases
from platform_core.control.leases import driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore, Cursor
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover, Move
from platform_core.errors import ServiceUnavailable
from platform_core.names import ReleaseId
from platform_core.streaming.driver.lease_monitor import LeaseMonitor, StopRequested
from tests.conftest import Database
from tests.control.words import created, until
from tests.cutover.words import HOUR, Pair, ask, pair
from tests.cutover.world import Driver, Table

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"again_{next(_jobs)}", 1), Owner.this_process())


class Distant(ControlStore):
    """The control store as one driver sees it: out of its reach for a while, and not of the others'."""

    reached = True

    @contextmanager
    def transaction(self) -> Generator[Cursor]:
        if not self.reached:
            raise ServiceUnavailable("Control store: cut off from this driver.", remedy="It is tried again.")
        with super().transaction() as cursor:
            yield cursor


@pytest.fixture
def distant(postgres: Database) -> Iterator[Distant]:
    made = Distant.open(postgres.settings)
    assert isinstance(made, Distant)
    yield made
    made.close()


@pytest.fixture
def monitor(distant: Distant, postgres: Database, one: Pair) -> Iterator[LeaseMonitor]:
    """Of the live release, at the end of its first batch."""
    made = LeaseMonitor(distant, postgres.settings, one.old.release, one.old.lease, None)
    made.start()
    made.begin(0)
    made.committed(one.old.at)
    yield made
    distant.reached = True
    made.end()


def test_a_release_that_stood_still_and_next_sees_the_way_back_goes_on_as_the_new_one(store: ControlStore) -> None:
    job = f"again_{next(_jobs)}"
    v1, v2 = (_driver(store, ReleaseId(job, number), state) for number, state in ((1, "live"), (2, "following")))
    aliases.point(store, "table_of_" + job, v1.release, None, "a test")
    v1.turn()
    found = protocol.request(store, [Move("table_of_" + job, v1.release, v2.release)], "cutover", "ada", HOUR)
    v1.turn()  # stands still, and does not look again for long
    v2.turn()
    assert protocol.flip(store, found.id).phase == "flipped"
    v2.turn()  # goes on
    v2.turn()  # and commits
    protocol.request(store, [Move("table_of_" + job, v2.release, v1.release)], "rollback", "ada", HOUR)
    v2.turn()
    assert (v1.table.offset, v2.table.offset) == (1, 2)
    v1.turn()
    assert v1.table.offset == 2
    again = protocol.of_release(store, v1.release)
    assert again is not None
    assert protocol.flip(store, again.id).phase == "flipped"


def _driver(store: ControlStore, release: ReleaseId, state: str) -> Driver:
    created(store, release, "live" if state == "live" else "following")
    lease = leases.acquire(store, driver_lease(release), Owner.this_process(), HOUR)
    return Driver(store, release, Table(), lease)


def test_a_driver_that_stood_still_begins_no_batch_while_it_cannot_look(
    monitor: LeaseMonitor, distant: Distant, one: Pair
) -> None:
    found = _held(monitor, one)
    distant.reached = False
    assert not _begun(monitor, 1)
    one.new.commit(10)
    assert one.new.align(found).phase == "aligned"
    assert protocol.flip(one.old.store, found.id).phase == "flipped"
    assert not _begun(monitor, 1)


def test_what_a_driver_had_planned_as_the_live_one_never_begins_when_it_next_sees_the_way_back(
    monitor: LeaseMonitor, distant: Distant, one: Pair
) -> None:
    found = _held(monitor, one)
    distant.reached = False
    waits, ended = _waiting(lambda: monitor.begin(1))
    _moved_on_and_asked_back(one, found)
    distant.reached = True
    waits.join(20)
    assert [type(error) for error in ended] == [StopRequested]
    assert (monitor.role, monitor.gate.begun) == ("standby", 0)
    monitor.recall(False)  # as a query is started that steps to where the new live release stands still
    monitor.begin(1)
    assert monitor.gate.begun == 1


def _held(monitor: LeaseMonitor, one: Pair) -> Cutover:
    one.new.commit(10)
    found = ask(one)
    until(lambda: _said(one) == one.old.at)
    assert monitor.cutover is not None
    return found


def _said(one: Pair) -> Position | None:
    found = protocol.of_release(one.old.store, one.old.release)
    return found.moves[0].paused_at if found else None


def _begun(monitor: LeaseMonitor, batch: int) -> bool:
    """Whether the gate lets it through, after several of its own looks."""

    class Enough(Exception):
        pass

    looks = itertools.count(1)

    def ask_often() -> None:
        if next(looks) > 5:
            raise Enough

    try:
        monitor.gate.enter(batch, ask_often)
    except Enough:
        return False
    return True


def _waiting(call: Callable[[], None]) -> tuple[threading.Thread, list[Exception]]:
    ended: list[Exception] = []

    def run() -> None:
        try:
            call()
        except StopRequested as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ended


def _moved_on_and_asked_back(one: Pair, found: Cutover) -> None:
    one.new.align(found)
    protocol.flip(one.old.store, found.id)
    one.new.swap(found)
    one.new.commit(12)
    one.new.hold(ask(one, kind="rollback"))
