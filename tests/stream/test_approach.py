"""When a live release stands still for a cutover: once every new release has come to where its old one was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from platform_core.control import positions
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.stream import approach
from platform_core.stream.approach import Approach

ONE, TWO = "one", "two"
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
def there(stands: Stands) -> Approach:
    """Both live releases at 100, both new ones at 50."""
    for release in stands.at:
        stands.at[release] = 100 if release.number == 1 else 50
    return Approach(None)  # pyright: ignore[reportArgumentType]


def test_it_goes_on_until_every_new_one_is_where_its_old_one_was(there: Approach, stands: Stands) -> None:
    assert not there.near(asked(), ReleaseId(ONE, 1))
    stands.at[ReleaseId(ONE, 1)] = 200  # it goes on meanwhile; where it was when asked is what counts
    stands.at[ReleaseId(ONE, 2)] = 100
    assert not there.near(asked(), ReleaseId(ONE, 1)), "the other table would stand still for long"
    stands.at[ReleaseId(TWO, 2)] = 101
    assert there.near(asked(), ReleaseId(ONE, 1))


def test_it_waits_for_what_time_alone_brings(there: Approach, stands: Stands) -> None:
    stands.clocks[ReleaseId(ONE, 1)] = 7
    stands.at |= {ReleaseId(job, 2): 100 for job in (ONE, TWO)}
    assert not there.near(asked(), ReleaseId(ONE, 1))
    stands.clocks[ReleaseId(ONE, 2)] = 7
    assert there.near(asked(), ReleaseId(ONE, 1))


def test_another_cutover_is_another_approach(there: Approach, stands: Stands) -> None:
    assert not there.near(asked(), ReleaseId(ONE, 1))
    stands.at |= {ReleaseId(job, number): 200 + number for job in (ONE, TWO) for number in (1, 2)}
    assert there.near(replace(asked(), id=8), ReleaseId(ONE, 1))
    stands.at |= {ReleaseId(job, 2): 0 for job in (ONE, TWO)}
    assert not there.near(replace(asked(), id=9), ReleaseId(ONE, 1))


def test_a_rollback_waits_for_nobody(there: Approach) -> None:
    assert there.near(asked("rollback"), ReleaseId(ONE, 1))


def test_who_has_said_that_it_stands_still_does_so(there: Approach) -> None:
    first, second = asked().moves
    told = replace(asked(), moves=(replace(first, held=Position("one@v1", 3, {})), second))
    assert there.near(told, ReleaseId(ONE, 1))
    assert not there.near(told, ReleaseId(TWO, 1))


def test_a_new_release_that_does_not_come_is_not_waited_for(there: Approach, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not there.near(asked(), ReleaseId(ONE, 1))
    monkeypatch.setattr(approach, "PATIENCE", 0.0)
    assert there.near(asked(), ReleaseId(ONE, 1))
