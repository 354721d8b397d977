"""Asking for a cutover and a rollback: behind gates, for all jobs at once, and twice without harm."""

from __future__ import annotations

import itertools

import pytest

from platform_core.control import releases, wanted
from platform_core.control.store import ControlStore
from platform_core.cutover import gates, protocol, request
from platform_core.cutover.gates import GateComparison, GateFacts
from platform_core.cutover.model import Cutover, Move
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from tests.cutover.words import HOUR, Pair, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"asked_{next(_jobs)}", 1))


@pytest.fixture
def other(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"asked_{next(_jobs)}", 1))


def ready(_: ControlStore, move: Move) -> GateFacts:
    return GateFacts(move.table, move.old, move.new, "following", True, GateComparison(True, (), 1.0), 1.0)


def ask(*pairs: Pair) -> Cutover:
    names = [one.old.release.job for one in pairs]
    return request.cut_over(pairs[0].old.store, names, "ada", seconds=HOUR, facts_of=ready)


def back(*pairs: Pair) -> Cutover:
    return request.roll_back(pairs[0].old.store, [one.old.release.job for one in pairs], "ada", seconds=HOUR)


def carried(found: Cutover, *pairs: Pair) -> Cutover:
    """By all drivers and the supervisor."""
    for one in pairs:
        here, there = (one.old, one.new) if found.kind == "cutover" else (one.new, one.old)
        here.hold(found)
        there.commit(here.at.offsets["t"][0])
        there.align(found)
    found = protocol.flip(pairs[0].old.store, found.id)
    for one in pairs:
        found = (one.new if found.kind == "cutover" else one.old).swap(found)
    assert found.phase == "swapped"
    return found


def test_jobs_move_to_their_candidates_and_back(one: Pair, other: Pair) -> None:
    done = carried(ask(one, other), one, other)
    assert (one.live, other.live) == (one.new.release, other.new.release)
    assert ask(one, other) == done
    one.new.commit(30)
    returned = carried(back(one, other), one, other)
    assert (one.live, other.live) == (one.old.release, other.old.release)
    assert back(one, other) == returned, "asked again, it does not go forth again"


def test_the_same_command_finds_what_is_under_way(one: Pair) -> None:
    assert ask(one) == ask(one)


def test_a_rolled_back_release_is_cut_over_to_by_its_name(store: ControlStore, one: Pair) -> None:
    carried(ask(one), one)
    carried(back(one), one)
    with pytest.raises(UsageError, match="has no candidate"):
        ask(one)
    found = request.cut_over(store, [str(one.new.release)], "ada", facts_of=ready)
    assert found.moves[0].new == one.new.release


def test_gates_refuse_with_everything_at_once(store: ControlStore, one: Pair) -> None:
    def unready(_: ControlStore, move: Move) -> GateFacts:
        return GateFacts(move.table, move.old, move.new, "replaying", True, None, None)

    with pytest.raises(UsageError, match=r"is replaying; .* stands at no recent position of .*; .* never compared"):
        request.cut_over(store, [one.old.release.job], "ada", facts_of=unready)
    assert protocol.of_release(store, one.old.release) is None


def test_a_rollback_has_no_gates_and_starts_the_release_that_stands_by(store: ControlStore, one: Pair) -> None:
    carried(ask(one), one)
    assert back(one).moves == (one.back,)
    asked = wanted.of(store, one.old.release)
    assert asked is not None
    assert asked.state == "run"


def test_there_is_no_way_back_to_what_has_gone_or_never_was(store: ControlStore, one: Pair) -> None:
    with pytest.raises(UsageError, match="was not cut over to: there is nothing to go back to"):
        back(one)
    with pytest.raises(UsageError, match="is following; only a release that stands by takes over"):
        request.roll_back(store, [str(one.new.release)], "ada")
    carried(ask(one), one)
    releases.set_state(store, one.old.release, "retired", "")
    with pytest.raises(UsageError, match=f"{one.old.release} is retired"):
        back(one)


def test_a_rollback_of_a_cutover_that_never_swapped_goes_back_at_once(store: ControlStore, one: Pair) -> None:
    found = ask(one)
    one.old.hold(found)
    one.new.commit(10)
    one.new.align(found)
    protocol.flip(store, found.id)
    one.new.die()
    assert back(one).moves == (one.back,)


def test_a_job_named_twice_and_one_that_is_done_already_are_refused(one: Pair, other: Pair) -> None:
    with pytest.raises(UsageError, match="named twice"):
        ask(one, one)
    carried(ask(one), one)
    with pytest.raises(UsageError, match=f"{one.new.release} is live already"):
        ask(one, other)


def test_facts_are_measured_where_both_stand(store: ControlStore, one: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_compared", lambda *_: None)
    far = gates.facts_of(store, one.move)
    assert (far.behind_seconds, far.state, far.runs) == (None, "following", False)
    one.new.commit(10)
    one.old.commit(11)
    near = gates.facts_of(store, one.move)
    assert near.behind_seconds is not None
    assert 0 < near.behind_seconds < 30
