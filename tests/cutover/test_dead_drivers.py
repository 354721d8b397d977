"""A live release whose driver is dead or frozen: spoken for from its table, and fenced."""

from __future__ import annotations

import itertools

import pytest

from platform_core.control import leases, positions
from platform_core.control.leases import driver_lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.errors import LeaseHeld, Superseded
from platform_core.names import ReleaseId
from tests.cutover.words import Pair, ask, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"dead_{next(_jobs)}", 1))


def test_a_dead_old_driver_is_held_where_its_table_stands(store: ControlStore, one: Pair) -> None:
    """Its last batch may be committed and not recorded."""
    one.old.die()
    found = ask(one)
    where = Position(str(one.old.release), 5, {"t": {0: 60}})
    with store.transaction() as cursor:
        epoch = leases.fence(cursor, driver_lease(one.old.release))
    assert protocol.pause_dead(store, found.id, one.old.release, epoch, where, 9).phase == "held"
    assert positions.latest(store, one.old.release) == (where, 9)
    one.new.commit(60)
    one.new.align(found)
    assert protocol.flip(store, found.id).phase == "flipped"


def test_a_fenced_driver_writes_nothing_when_it_wakes(store: ControlStore, one: Pair) -> None:
    lapse(store, one.old.lease.name)
    with store.transaction() as cursor:
        leases.lock(cursor, [one.old.lease.name])
        with pytest.raises(LeaseHeld):  # its process lives; it may only be slow
            leases.fence(cursor, one.new.lease.name)
        leases.fence(cursor, one.old.lease.name)
    with pytest.raises(Superseded):
        one.old.commit(11)
    with pytest.raises(Superseded):
        one.old.hold(ask(one))


def lapse(store: ControlStore, name: str) -> None:
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.leases set expires_at = clock_timestamp() - interval '1 ms' where name = %s", (name,)
        )


def test_whoever_speaks_for_the_dead_is_silent_once_a_driver_has_begun(store: ControlStore, one: Pair) -> None:
    one.old.die()
    found = ask(one)
    with store.transaction() as cursor:
        epoch = leases.fence(cursor, driver_lease(one.old.release))
    where = one.old.at
    one.old.begin_again()
    assert protocol.pause_dead(store, found.id, one.old.release, epoch, where, 9).phase == "requested"
