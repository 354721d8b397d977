"""The state machine of a cutover: wholly old or wholly new, whoever dies when, whoever asks twice."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from platform_core.control import aliases, audit, releases
from platform_core.control.position import TableVersion
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.errors import PositionError, UsageError
from platform_core.names import ReleaseId
from tests.cutover.words import Pair, aligned, ask, expire, pair

pytestmark = pytest.mark.stack
_jobs = itertools.count(1)


@pytest.fixture
def one(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"moved_{next(_jobs)}", 1))


@pytest.fixture
def other(store: ControlStore) -> Pair:
    return pair(store, ReleaseId(f"moved_{next(_jobs)}", 1))


def flip(store: ControlStore, found: Cutover) -> Cutover:
    return protocol.flip(store, found.id)


def test_two_tables_move_together(store: ControlStore, one: Pair, other: Pair) -> None:
    found = ask(one, other)
    assert one.old.hold(found).phase == "requested"
    assert other.old.hold(found).phase == "held"
    one.new.commit(10)
    assert one.new.align(found).phase == "held"
    other.new.commit(10)
    assert other.new.align(found).phase == "aligned"
    assert (one.live, other.live) == (one.old.release, other.old.release)
    assert flip(store, found).phase == "flipped"
    assert (one.live, other.live) == (one.new.release, other.new.release)
    assert [side.state for side in (one.old, one.new, other.old, other.new)] == ["standby", "live"] * 2
    assert one.new.swap(found).phase == "flipped"
    assert other.new.swap(found).phase == "swapped"
    assert protocol.of_release(store, one.new.release) is None


def test_the_alias_says_where_the_new_release_took_over(store: ControlStore, one: Pair) -> None:
    flip(store, aligned(one))
    alias = aliases.live(store, one.table)
    assert alias is not None
    assert alias.position == one.new.at


def test_what_a_cutover_waits_for_is_told(store: ControlStore, one: Pair) -> None:
    found = ask(one)
    assert found.why == f"waits for {one.old.release} to pause after its batch"
    found = one.old.hold(found)
    assert found.why == f"waits for {one.new.release} to reach the same offsets"
    one.new.commit(10)
    assert one.new.align(found).why == ""
    one.new.begin_again()
    assert flip(store, found).why == f"the driver of {one.new.release} that reached the offsets has gone"


def test_both_drivers_find_the_cutover_that_they_take_part_in(store: ControlStore, one: Pair, other: Pair) -> None:
    found = ask(one)
    assert protocol.of_release(store, one.old.release) == found
    assert protocol.of_release(store, one.new.release) == found
    assert protocol.of_release(store, other.old.release) is None
    assert found.pauses(one.old.release)
    assert not found.pauses(one.new.release)


def test_of_two_at_once_one_wins_and_the_other_says_who(one: Pair, other: Pair) -> None:
    def try_to(by: str) -> Cutover | UsageError:
        pairs = [one, other] if by == "ada" else [other, one] if by == "bob" else [other]
        try:
            return ask(*pairs, by=by)
        except UsageError as error:
            return error

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(try_to, ["ada", "bob", "cyd"] * 2))
    won = [answer for answer in answers if isinstance(answer, Cutover)]
    assert len(won) == 1
    lost = [str(answer) for answer in answers if isinstance(answer, UsageError)]
    assert all(f"{won[0].by} asked for cutover {won[0].id} of " in answer for answer in lost)


def test_a_table_is_free_again_once_its_cutover_has_ended(store: ControlStore, one: Pair) -> None:
    protocol.abort(store, ask(one).id, "changed my mind")
    assert ask(one).phase == "requested"


def test_a_cutover_from_a_release_that_is_not_live_is_refused(one: Pair) -> None:
    with pytest.raises(UsageError, match=rf"its live release is {one.old.release}, not {one.new.release}"):
        ask(one, kind="rollback")


def test_nobody_cuts_over_to_a_retired_release(store: ControlStore, one: Pair) -> None:
    releases.set_state(store, one.new.release, "retired", "")
    with pytest.raises(UsageError, match=f"{one.new.release} is retired, neither following nor standby"):
        ask(one)


def test_every_word_may_be_said_twice(store: ControlStore, one: Pair) -> None:
    found = ask(one)
    assert one.old.hold(found) == one.old.hold(found)
    one.new.commit(10)
    assert one.new.align(found) == one.new.align(found)
    assert flip(store, found) == flip(store, found)
    assert one.old.hold(found).phase == one.new.align(found).phase == "flipped"
    assert one.new.swap(found) == one.new.swap(found)
    assert flip(store, found).phase == protocol.abort(store, found.id, "too late").phase == "swapped"
    phases = [line.detail["phase"] for line in audit.read(store, one.old.release.job) if line.action == "cutover"]
    assert phases == ["swapped", "flipped", "aligned", "held", "requested"]


def test_the_new_release_aligns_where_the_old_one_has_paused_and_nowhere_else(one: Pair) -> None:
    found = ask(one)
    with pytest.raises(PositionError, match="has not paused yet"):
        one.new.align(found)
    one.old.hold(found)
    with pytest.raises(PositionError, match=rf"{one.old.release} is paused at"):
        one.new.align(found)


def test_an_older_position_than_the_recorded_one_is_refused(store: ControlStore, one: Pair) -> None:
    before = one.old.at
    one.old.commit(12)
    with pytest.raises(PositionError, match="tells of batch 0, and has recorded batch 1"):
        protocol.tell_paused(store, one.old.lease, ask(one).id, before)


def test_an_old_driver_that_began_again_further_on_is_aligned_to_again(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    one.old.begin_again()
    one.old.commit(20)
    assert flip(store, found).why == f"another driver of {one.old.release} has started since it paused"
    assert one.old.hold(found).phase == "held"
    one.new.commit(20)
    assert one.new.align(found).phase == "aligned"
    assert flip(store, found).phase == "flipped"


def test_an_old_driver_that_began_again_at_the_same_place_costs_no_new_step(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    one.old.begin_again()
    assert flip(store, found).phase == "aligned"
    assert one.old.hold(found).phase == "aligned"
    assert flip(store, found).phase == "flipped"


def test_a_new_driver_that_began_again_tells_again_before_the_flip(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    one.new.begin_again()
    assert flip(store, found).phase == "aligned"
    one.new.align(found)
    assert flip(store, found).phase == "flipped"


def test_nothing_flips_to_a_release_whose_driver_has_died(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    one.new.die()
    assert flip(store, found).phase == "aligned"
    assert one.live == one.old.release


def test_nothing_flips_past_a_batch_that_was_recorded_since(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    one.old.commit(11)
    assert flip(store, found).why == f"{one.old.release} has committed since it paused"


def test_one_table_that_may_not_move_keeps_all(store: ControlStore, one: Pair, other: Pair) -> None:
    found = aligned(one, other)
    aliases.point(store, other.table, ReleaseId("elsewhere", 1), None, "bob")
    assert flip(store, found).why == f"{other.old.release} is not the live release of {other.table}"
    assert one.live == one.old.release
    assert one.old.state == "live"


def test_a_candidate_that_failed_meanwhile_does_not_go_live(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    releases.set_state(store, one.new.release, "failed", "it broke")
    assert flip(store, found).why == f"{one.new.release} is failed, neither following nor standby"


def test_after_its_deadline_nothing_flips_and_the_live_release_goes_on(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    assert protocol.abort_late(store, found.id).phase == "aligned"
    expire(store, found)
    assert flip(store, found).phase == "aligned"
    assert protocol.abort_late(store, found.id).phase == "aborted"
    assert protocol.of_release(store, one.old.release) is None
    assert (one.live, one.old.state, one.new.state) == (one.old.release, "live", "following")


def test_an_aborted_cutover_hears_nothing_more(store: ControlStore, one: Pair) -> None:
    found = aligned(one)
    ended = protocol.abort(store, found.id, "changed my mind", "bob")
    assert (ended.phase, ended.why) == ("aborted", "changed my mind")
    assert one.old.hold(found) == one.new.align(found) == flip(store, found) == one.new.swap(found) == ended


def test_after_the_flip_there_is_no_way_back_but_a_rollback(store: ControlStore, one: Pair) -> None:
    found = flip(store, aligned(one))
    expire(store, found)
    assert protocol.abort(store, found.id, "no").phase == protocol.abort_late(store, found.id).phase == "flipped"
    assert one.live == one.new.release


def test_a_rollback_goes_the_same_way_back(store: ControlStore, one: Pair) -> None:
    one.new.swap(flip(store, aligned(one)))
    one.new.commit(15)
    back = one.new.hold(ask(one, kind="rollback"))
    one.old.commit(15)
    one.old.align(back)
    assert one.old.swap(flip(store, back)).phase == "swapped"
    assert (one.live, one.old.state, one.new.state) == (one.old.release, "live", "standby")


def test_a_rollback_ends_a_cutover_whose_new_release_never_goes_on(store: ControlStore, one: Pair) -> None:
    found = flip(store, aligned(one))
    one.new.die()
    assert ask(one, kind="rollback").phase == "requested"
    ended = protocol.get(store, found.id)
    assert (ended.phase, ended.why) == ("swapped", f"rolled back before {one.new.release} had gone on")


def test_only_the_releases_of_a_cutover_speak_in_it(store: ControlStore, one: Pair, other: Pair) -> None:
    with pytest.raises(UsageError, match=f"has no old release that {other.old.lease.name} speaks for"):
        protocol.tell_paused(store, other.old.lease, ask(one).id, other.old.at)


def test_a_version_that_reads_another_topic_aligns_on_those_that_both_read(store: ControlStore, one: Pair) -> None:
    found = one.old.hold(ask(one))
    more = replace(one.new.at, offsets={"t": {0: 10, 1: 0}, "added": {0: 99}})
    assert protocol.tell_aligned(store, one.new.lease, found.id, more, 7).phase == "aligned"


def test_a_release_is_aligned_at_the_version_of_a_table_and_not_before(store: ControlStore, one: Pair) -> None:
    """And the alias says which version that was."""
    trades = [{"trades": TableVersion("trades@v1", version)} for version in (4, 5)]
    found = protocol.tell_paused(store, one.old.lease, ask(one).id, replace(one.old.at, tables=trades[1]))
    one.new.commit(10)
    with pytest.raises(PositionError, match=r"trades at trades@v1 version 4; .* trades at trades@v1 version 5"):
        protocol.tell_aligned(store, one.new.lease, found.id, replace(one.new.at, tables=trades[0]), 7)
    stands = replace(one.new.at, tables=trades[1])
    assert protocol.tell_aligned(store, one.new.lease, found.id, stands, 7).phase == "aligned"
    move = protocol.get(store, found.id).moves[0]
    assert move.paused_at is not None
    assert (move.paused_at.tables, move.aligned) == (trades[1], stands)
    flip(store, found)
    alias = aliases.live(store, one.table)
    assert alias is not None
    assert alias.position == stands


def test_many_flips_and_aborts_at_once_agree(store: ControlStore, one: Pair, other: Pair) -> None:
    found = aligned(one, other)

    def press(turn: int) -> str:
        done = flip(store, found) if turn % 2 else protocol.abort(store, found.id, "changed my mind")
        return done.phase

    with ThreadPoolExecutor(8) as threads:
        phases = set(threads.map(press, range(16)))
    assert len(phases) == 1
    wanted = [one.new.release, other.new.release] if phases == {"flipped"} else [one.old.release, other.old.release]
    assert [one.live, other.live] == wanted


def test_a_table_keeps_the_history_of_its_cutovers(store: ControlStore, one: Pair) -> None:
    protocol.abort(store, ask(one).id, "changed my mind")
    one.new.swap(flip(store, aligned(one)))
    assert [done.phase for done in protocol.of_table(store, one.table)] == ["swapped", "aborted"]
