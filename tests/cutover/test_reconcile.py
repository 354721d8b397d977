"""What a round does about a live release whose driver is dead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_core.control import leases
from platform_core.control.leases import driver_lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.reconcile import not_to_start, reconcile
from platform_core.names import ReleaseId
from tests.conftest import Database
from tests.cutover.words import Pair, ask, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def store(postgres: Database, tmp_path: Path) -> Iterator[ControlStore]:
    """With no cutover under way but the test's own."""
    opened = ControlStore.open(postgres.another(tmp_path))
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"carried_{next(_jobs)}", 1))


def kept_from_starting(store: ControlStore) -> frozenset[ReleaseId]:
    with store.transaction() as cursor:
        return not_to_start(protocol.all_open(store), leases.among(cursor, "driver/"))


def test_a_table_that_cannot_be_read_is_told_and_tried_again(store: ControlStore, one: Pair) -> None:
    one.old.die()
    found = ask(one)

    def away(release: ReleaseId) -> tuple[Position, int] | None:
        raise OSError(f"{release} is out of reach")

    (now,) = reconcile(store, away)
    assert (now.phase, now.why) == (
        "requested",
        f"The table of {one.old.release} cannot be read: {one.old.release} is out of reach.",
    )
    assert kept_from_starting(store) == frozenset()
    (now,) = reconcile(store, lambda release: (Position(str(release), 3, {"t": {0: 30}}), 9))
    assert (now.id, now.phase) == (found.id, "held")


def test_a_live_release_without_a_single_batch_has_nothing_to_cut_over_from(store: ControlStore, one: Pair) -> None:
    one.old.die()
    ask(one)
    (now,) = reconcile(store, lambda _: None)
    assert now.why == f"{one.old.release} has no driver, and its table holds no batch to cut over from."


def test_the_dead_are_kept_from_starting_until_it_has_ended_and_fenced_once(store: ControlStore, one: Pair) -> None:
    one.old.die()
    found = ask(one)
    stands = (one.old.at, 100)
    reconcile(store, lambda _: stands)
    epoch = leases.current(store, driver_lease(one.old.release))
    reconcile(store, lambda _: stands)
    assert leases.current(store, driver_lease(one.old.release)) == epoch
    assert kept_from_starting(store) == {one.old.release}
    protocol.abort(store, found.id, "changed my mind")
    assert kept_from_starting(store) == frozenset()


def test_a_driver_that_lives_tells_itself(store: ControlStore, one: Pair) -> None:
    ask(one)

    def unasked(release: ReleaseId) -> tuple[Position, int] | None:
        raise AssertionError(f"{release} was asked for")

    (now,) = reconcile(store, unasked)
    assert now.phase == "requested"
    assert kept_from_starting(store) == frozenset()
