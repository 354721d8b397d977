"""Whatever happens, in whatever order: never a second driver, and in the end what is wanted."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from platform_core.supervise.decide import Ending
from tests import properties
from tests.supervise.world import World

CODES = st.sampled_from([0, 1, 75, -9, -15])


class Fate(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.world.tick()

    @rule(state=st.sampled_from(["run", "run", "stop", "pause"]))
    def someone_wants(self, state: str) -> None:
        self.world.want("run" if state == "run" else "stop" if state == "stop" else "pause")

    @precondition(lambda self: self.world.wanted is not None)
    @rule()
    def someone_restarts_it(self) -> None:
        self.world.want("run", again=True)

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data(), code=CODES, seen=st.booleans())
    def a_driver_ends(self, data: st.DataObject, code: int, seen: bool) -> None:
        self.world.end(data.draw(st.sampled_from(list(self.world.processes))), Ending.exited(code), seen)

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data(), frozen=st.booleans())
    def a_driver_is_stopped_or_wakes(self, data: st.DataObject, frozen: bool) -> None:
        self.world.processes[data.draw(st.sampled_from(list(self.world.processes)))].frozen = frozen

    @precondition(lambda self: self.world.processes)
    @rule(data=st.data())
    def a_driver_no_longer_listens(self, data: st.DataObject) -> None:
        self.world.processes[data.draw(st.sampled_from(list(self.world.processes)))].stubborn = True

    @rule(host=st.sampled_from(["here", "there"]))
    def someone_runs_it_by_hand(self, host: str) -> None:
        self.world.run_by_hand(host)

    @rule(orphan_in=st.none() | st.integers(0, 10))
    def the_supervisor_is_killed(self, orphan_in: int | None) -> None:
        self.world.supervisor_dies(orphan_in)

    @rule(seconds=st.integers(1, 120))
    def the_store_goes_away(self, seconds: int) -> None:
        self.world.away = seconds

    @rule(hours=st.sampled_from([-1, 1]))
    def the_clock_is_set(self, hours: int) -> None:
        self.world.now += timedelta(hours=hours)

    @invariant()
    def one_at_most_holds_the_lease(self) -> None:
        assert len(self.world.at_work()) <= 1

    def teardown(self) -> None:
        """From wherever it got: left in peace, it becomes what is wanted."""
        world = self.world
        if world.given_up:
            world.want("run")
        for _ in range(600):
            world.tick()
        if world.wanted is None:
            return
        elsewhere = any(one.owner.host == "there" for one in world.at_work())  # which a stubborn one never leaves
        if world.wanted.state != "run":
            assert world.case().seen.living == frozenset()
            assert elsewhere or world.row is None or world.row.state in ("stopped", "failed")
            return
        assert len(world.at_work()) == 1
        assert elsewhere or (world.row is not None and (world.row.state, world.row.failures) == ("running", 0))


@properties.tiers(few=100, many=2_000)
def test_whatever_happens_one_driver_at_most_is_at_work_and_in_the_end_what_is_wanted(examples: int) -> None:
    run_state_machine_as_test(Fate, settings=properties.of(examples, steps=25))


def test_a_driver_elsewhere_that_is_frozen_past_its_lease_is_replaced_and_ends_when_it_wakes() -> None:
    """Found by the property: nobody here sees that it lives, and its lease alone speaks for it."""
    world = World()
    world.want("run")
    world.supervisor_dies(None)
    world.run_by_hand("there")
    (elsewhere,) = world.processes.values()
    for _ in range(30):
        world.tick()
    assert world.at_work() == [elsewhere]
    elsewhere.frozen = True
    for _ in range(60):
        world.tick()
    assert [one.owner.host for one in world.at_work()] == ["here"]
    elsewhere.frozen = False
    for _ in range(60):
        world.tick()
    assert [one.owner.host for one in world.processes.values()] == ["here"]
