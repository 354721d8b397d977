"""One word for each release: what is true, where it differs from what is wanted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from platform_core.control.drivers import DriverState
from platform_core.control.facts import BatchFacts
from platform_core.control.progress import Progress
from platform_core.control.releases import Release
from platform_core.control.services import Beat
from platform_core.control.wanted import Wanted
from platform_core.cutover.model import Cutover, Move
from platform_core.names import ReleaseId
from platform_core.operations.status import StatusFacts, lines, state_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
V1 = ReleaseId("stock_stats", 1)


def wanted(state: Any, reason: str = "") -> Wanted:
    return Wanted(V1, state, 1, "ann", reason, NOW)


def driver(state: Any, **more: Any) -> DriverState:
    known: dict[str, Any] = {
        "release": V1,
        "state": state,
        "owner": None,
        "generation": 1,
        "failures": 0,
        "restarts": 0,
        "next_try_at": None,
        "running_since": None,
        "reason": "",
        "permanent": False,
        "given_up": False,
        "updated_at": NOW,
    }
    return DriverState(**{**known, **more})


def release(number: int = 1, state: Any = "live") -> Release:
    return Release(ReleaseId("stock_stats", number), state, "", "", {}, {}, NOW, "ann", "", NOW)


def facts(*releases: Release, **more: Any) -> StatusFacts:
    known: dict[str, Any] = {"wanted": {}, "drivers": {}, "alive": frozenset(), "progress": {}, "beats": {}}
    return StatusFacts(releases=releases, **{**known, **more})


@pytest.mark.parametrize(
    ("asked", "found", "alive", "word"),
    [
        (None, None, False, "not started"),
        (wanted("run"), None, False, "waiting"),
        (wanted("run"), driver("starting"), True, "starting"),
        (wanted("run"), driver("running"), True, "running"),
        (wanted("run"), driver("running"), False, "silent"),
        (wanted("run"), driver("waiting"), False, "waiting"),
        (wanted("run"), driver("stopped"), False, "waiting"),
        (wanted("run"), driver("failed", given_up=True), False, "failed"),
        (wanted("stop"), driver("running"), True, "running"),
        (wanted("stop"), driver("stopping"), True, "stopping"),
        (wanted("stop"), driver("stopped"), False, "stopped"),
        (wanted("pause"), driver("stopped"), False, "paused"),
        (wanted("pause"), None, False, "paused"),
    ],
)
def test_the_state_is_one_word(asked: Wanted | None, found: DriverState | None, alive: bool, word: str) -> None:
    assert state_of(asked, found, alive=alive) == word


def test_a_line_says_why_a_driver_was_given_up() -> None:
    failed = driver("failed", given_up=True, reason="51 of 100 records rejected, limit 50", restarts=5)
    line = lines(facts(release(), wanted={V1: wanted("run")}, drivers={V1: failed}))[0]
    assert (line.state, line.restarts, line.reason) == ("failed", 5, "51 of 100 records rejected, limit 50")


def test_a_line_says_who_stopped_it() -> None:
    line = lines(facts(release(), wanted={V1: wanted("stop")}, drivers={V1: driver("stopped")}))[0]
    assert line.reason == "by ann"


def test_a_line_shows_lag_over_all_partitions_and_totals() -> None:
    batch = BatchFacts(
        at=NOW, batch=7, records_in=10, rows_out=5, lag={"stocks": {0: 3, 1: 4}}, freshness_seconds=0.42,
        batch_seconds=0.29, records_per_second=9876.5,
    )  # fmt: skip
    totals = {"records_in": 100, "used": 97, "rows_out": 50, "late": 2, "rejected": 1, "filtered": 0}
    progress = Progress(V1, batch, totals, NOW, 0.5)
    line = lines(facts(release(), progress={V1: progress}))[0]
    assert (line.lag, line.batch, line.late, line.rejected) == (7, 7, 2, 1)
    assert line.cells()[4:7] == (9876, "420 ms", "290 ms")


def test_retired_releases_and_other_jobs_are_left_out() -> None:
    known = facts(release(1, "retired"), release(2), release(3, "standby"))
    assert [line.release for line in lines(known)] == ["stock_stats@v2", "stock_stats@v3"]
    assert lines(known, frozenset({"word_count"})) == []
    assert lines(known)[1].cells()[2] == "not started (standby)"


@pytest.mark.parametrize(
    ("beats", "there"),
    [
        ({}, False),
        ({"supervisor": Beat("supervisor", NOW, 1, {})}, True),
        ({"supervisor": Beat("s", NOW, 60, {})}, False),
    ],
)
def test_a_supervisor_that_is_silent_is_not_there(beats: dict[str, Beat], there: bool) -> None:
    found = facts(beats=beats).supervision
    assert found.there is there
    assert there or "NOTHING SUPERVISES" in str(found)


def test_a_line_shows_the_cutover_that_its_release_takes_part_in() -> None:
    moves = (Move("stock_stats", V1, ReleaseId("stock_stats", 2)),)
    why = "v2 has 9 records to read"
    under_way = Cutover(3, "cutover", "held", "ann", "", why, NOW, NOW, NOW, None, None, None, False, moves)
    seen = [release(1), release(2, "following"), release(3, "standby")]
    old, new, other = lines(facts(*seen, cutovers=[under_way]))
    assert (old.reason, new.reason) == ("cutover 3 is held, asked by ann: v2 has 9 records to read",) * 2
    assert other.reason == ""
