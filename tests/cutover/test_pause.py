"""When a live release pauses for a cutover: once every new release has come to where its old one was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from platform_core.control import positions
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import pause
from platform_core.cutover.model import Cutover, Move
from platform_core.cutover.pause import Pause
from platform_core.names import ReleaseId
from platform_core.streaming.driver.batch_gate import BatchGate

ONE, TWO = "one", "two"
Near = Callable[[Cutover, ReleaseId], bool]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asked(kind: str = "cutover") -> Cutover:
    moves = tuple(Move(job, ReleaseId(job, 1), ReleaseId(job, 2)) for job in (ONE, TWO))
    never = {"held_at": None, "aligned_at": None, "flipped_at": None, "ended_at": None}
    told = {"id": 7, "kind": kind, "phase": "requested", "by": "a test", "reason": "", "why": "", "late": False}
    return Cutover(requested_at=NOW, deadline_at=NOW, moves=moves, **never, **told)  # pyright: ignore[reportArgumentType]


class Stands:
    """Where each release is; a store that is asked for nothing else."""

    def __init__(self) -> None:
        self.at = {ReleaseId(job, number): 0 for job in (ONE, TWO) for number in (1, 2)}
        self.clocks = dict(self.at)

    def latest(self, _: ControlStore | None, release: ReleaseId) -> tuple[Position, int | None] | None:
        return Position(str(release), 0, {release.job: {0: self.at[release]}}, watermark_ms=self.clocks[release]), 1


@pytest.fixture
def stands(monkeypatch: pytest.MonkeyPatch) -> Stands:
    made = Stands()
    monkeypatch.setattr(positions, "latest", made.latest)
    return made


@pytest.fixture
def near(stands: Stands) -> Near:
    """Both live releases at 100, both new ones at 50."""
    for release in stands.at:
        stands.at[release] = 100 if release.number == 1 else 50
    of = {ReleaseId(job, 1): Pause(None, ReleaseId(job, 1), BatchGate()) for job in (ONE, TWO)}  # pyright: ignore
    return lambda found, live: of[live].is_near(found)


def test_it_goes_on_until_every_new_one_is_where_its_old_one_was(near: Near, stands: Stands) -> None:
    assert not near(asked(), ReleaseId(ONE, 1))
    stands.at[ReleaseId(ONE, 1)] = 200  # it goes on meanwhile; where it was when asked is what counts
    stands.at[ReleaseId(ONE, 2)] = 100
    assert not near(asked(), ReleaseId(ONE, 1)), "the other table would be paused for long"
    stands.at[ReleaseId(TWO, 2)] = 101
    assert near(asked(), ReleaseId(ONE, 1))


def test_it_waits_for_what_time_alone_brings(near: Near, stands: Stands) -> None:
    stands.clocks[ReleaseId(ONE, 1)] = 7
    stands.at |= {ReleaseId(job, 2): 100 for job in (ONE, TWO)}
    assert not near(asked(), ReleaseId(ONE, 1))
    stands.clocks[ReleaseId(ONE, 2)] = 7
    assert near(asked(), ReleaseId(ONE, 1))


def test_another_cutover_has_goals_of_its_own(near: Near, stands: Stands) -> None:
    assert not near(asked(), ReleaseId(ONE, 1))
    stands.at |= {ReleaseId(job, number): 200 + number for job in (ONE, TWO) for number in (1, 2)}
    assert near(replace(asked(), id=8), ReleaseId(ONE, 1))
    stands.at |= {ReleaseId(job, 2): 0 for job in (ONE, TWO)}
    assert not near(replace(asked(), id=9), ReleaseId(ONE, 1))


def test_a_rollback_waits_for_nobody(near: Near) -> None:
    assert near(asked("rollback"), ReleaseId(ONE, 1))


def test_who_has_told_that_it_is_paused_stays_so(near: Near) -> None:
    first, second = asked().moves
    told = replace(asked(), moves=(replace(first, paused_at=Position("one@v1", 3, {})), second))
    assert near(told, ReleaseId(ONE, 1))
    assert not near(told, ReleaseId(TWO, 1))


def test_a_new_release_that_does_not_come_is_not_waited_for(near: Near, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not near(asked(), ReleaseId(ONE, 1))
    monkeypatch.setattr(pause, "NEAR_SECONDS", 0.0)
    assert near(asked(), ReleaseId(ONE, 1))
