"""Who reads which release, and who needs what of it."""

from __future__ import annotations

import itertools

import pytest

from platform_core.control import audit, clients, holds, releases
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from tests.cutover.words import Pair, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"read_{next(_jobs)}", 1))


@pytest.fixture
def name(one: Pair) -> str:
    return f"report_of_{one.table}"


def pinned(store: ControlStore, name: str) -> dict[str, ReleaseId]:
    with store.transaction() as cursor:
        return clients.pins(cursor, name)


def test_a_client_is_pinned_then_moved_to_live(store: ControlStore, one: Pair, name: str) -> None:
    clients.bind(store, name, one.table, one.old.release, "ada")
    assert pinned(store, name) == {one.table: one.old.release}
    clients.bind(store, name, one.table, None, "bob")
    assert pinned(store, name) == {}
    assert [(found.release, found.by) for found in clients.of_table(store, one.table)] == [(None, "bob")]
    lines = [line for line in audit.read(store, one.table) if line.action == "bind"]
    assert [(line.who, line.detail["to"]) for line in lines] == [("bob", "live"), ("ada", str(one.old.release))]


def test_a_client_that_is_unbound_is_forgotten(store: ControlStore, one: Pair, name: str) -> None:
    clients.bind(store, name, one.table, one.old.release, "ada")
    assert [gone.table for gone in clients.unbind(store, name, None, "ada")] == [one.table]
    with pytest.raises(UsageError, match=f"There is no client '{name}'"):
        clients.unbind(store, name, None, "ada")
    with pytest.raises(UsageError, match=f"There is no client '{name}'"):
        pinned(store, name)


def test_a_client_is_bound_to_a_release_of_that_table(store: ControlStore, one: Pair, name: str) -> None:
    other = pair(store, ReleaseId(f"read_{next(_jobs)}", 1))
    with pytest.raises(UsageError, match=f"writes table '{other.table}', not '{one.table}'"):
        clients.bind(store, name, one.table, other.old.release, "ada")
    with pytest.raises(UsageError, match=r"There is no table 'nothing'"):
        clients.bind(store, name, "nothing", None, "ada")


def test_nobody_is_bound_to_what_is_gone(store: ControlStore, one: Pair, name: str) -> None:
    releases.set_state(store, one.new.release, "retired", "")
    with pytest.raises(UsageError, match="is retired: it has nothing to read"):
        clients.bind(store, name, one.table, one.new.release, "ada")
    with pytest.raises(UsageError, match="is retired: nothing of it is left to hold"):
        holds.claim(store, one.new.release, "table", "ada")


def test_a_hold_keeps_versions_until_it_is_dropped(store: ControlStore, one: Pair) -> None:
    release = one.old.release
    assert holds.held_versions(store, release) == []
    assert holds.oldest_version(store, release) is None
    first = holds.claim(store, release, "table", "a compare", version=7)
    holds.claim(store, release, "table", "a compare", version=5)
    holds.claim(store, release, "offsets", "a replay")
    assert (holds.held_versions(store, release), holds.oldest_version(store, release)) == ([5, 7], 5)
    holds.drop(store, first.id)
    holds.drop(store, first.id)
    assert holds.held_versions(store, release) == [5]
    holds.claim(store, release, "table", "a standby")
    assert (holds.held_versions(store, release), holds.oldest_version(store, release)) == (None, 0)


def test_a_hold_whose_time_is_over_holds_nothing(store: ControlStore, one: Pair) -> None:
    holds.claim(store, one.old.release, "table", "a compare that died", version=3, seconds=-1)
    held = holds.claim(store, one.old.release, "table", "a compare", version=4, seconds=60)
    assert holds.held_versions(store, one.old.release) == [4]
    assert holds.of_release(store, one.old.release) == [held]
    assert str(held).startswith("a compare holds its table version 4 until 20")
