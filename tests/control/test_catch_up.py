"""How far a replay, a follower, a landing and a live release far behind have come, and when they will be there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from platform_core.control import catch_up, leases, positions, releases
from platform_core.control.catch_up import CatchUpProgress, duration, gain
from platform_core.control.facts import BatchFacts
from platform_core.control.leases import driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Offsets, Position
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from tests.control.words import facts

REPLAY = CatchUpProgress("replay", read=600_000, left=400_000, rate=10_000, growth=2_000, live="stock_stats@v1")


def test_a_replay_says_what_is_left_and_when_it_can_be_live() -> None:
    assert (REPLAY.share, REPLAY.seconds) == (0.6, 50.0)
    assert str(REPLAY) == "replay 60 % done, 400,000 records left, 10,000 records/s, can be live in about 50 s"


def test_the_time_left_counts_what_the_live_release_takes_meanwhile() -> None:
    assert replace(REPLAY, growth=0.0).seconds == 40.0
    caught = replace(REPLAY, growth=10_000)
    assert caught.seconds is None
    assert str(caught).endswith("10,000 records/s, and the live release takes 10,000: it does not come nearer")


def test_no_replay_is_done_before_its_last_record() -> None:
    assert str(replace(REPLAY, read=999_999, left=1)).startswith("replay 99 % done, 1 record left")
    assert str(replace(REPLAY, left=0)).startswith("replay 100 % done, 0 records left")


def test_before_two_batches_no_rate_is_made_up() -> None:
    begun = CatchUpProgress("replay", read=0, left=1_000, live="stock_stats@v1")
    assert (begun.seconds, str(begun)) == (None, "replay 0 % done, 1,000 records left")


def test_a_replay_without_a_batch_for_a_minute_promises_no_time() -> None:
    still = replace(REPLAY, silent=125.0)
    assert still.seconds is None
    assert str(still) == "replay 60 % done, 400,000 records left, no batch for 2 minutes"


def test_a_follower_that_is_a_step_away_says_what_it_is_behind() -> None:
    follower = CatchUpProgress("follow", read=10**6, left=1_500, rate=100, growth=100, live="stock_stats@v1")
    assert str(follower) == "follows stock_stats@v1, 1,500 records behind"
    far = replace(follower, left=600_000, rate=5_000)
    assert str(far) == (
        "catching up with stock_stats@v1: 62 % done, 600,000 records left, 5,000 records/s, "
        "can be live in about 2 minutes"
    )


def test_a_landing_goes_to_the_end_of_its_topic() -> None:
    landing = CatchUpProgress("landing", read=3_000, left=9_000, rate=10)
    assert str(landing) == (
        "landing 25 % done, 9,000 records left, 10 records/s, at the end of its topics in about 15 minutes"
    )
    assert str(replace(landing, kind="catch_up", growth=10)) == (
        "catching up: 25 % done, 9,000 records left, 10 records/s, and its topics receive 10: it does not come nearer"
    )


def test_programs_get_the_same_in_numbers() -> None:
    assert REPLAY.plain() == {
        "kind": "replay",
        "share": 0.6,
        "read": 600_000,
        "left": 400_000,
        "records_per_second": 10_000,
        "seconds": 50,
        "says": str(REPLAY),
    }


@pytest.mark.parametrize(
    ("seconds", "told"), [(40, "40 s"), (89, "89 s"), (95, "2 minutes"), (5_000, "83 minutes"), (9_000, "2.5 hours")]
)
def test_durations_are_as_people_say_them(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_a_lag_that_a_new_driver_has_not_asked_for_yet_is_no_gain() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    lags = [0, 900, 700, 500]
    batches = [BatchFacts(now + timedelta(seconds=10 * n), n, 1, 1, lag={"t": {0: lag}}) for n, lag in enumerate(lags)]
    assert gain(batches) == 20.0
    assert gain(batches[:2]) == 0.0


def made(
    store: ControlStore, release: ReleaseId, state: Any, begins: Offsets | None = None, kind: str = "Stream"
) -> None:
    manifest = {"declared": {"inputs": {"trades": {"is": kind, "topic": {"name": "trades"}}}}}
    start = None if begins is None else StartPosition("earliest", None, begins)
    with store.transaction() as cursor:
        releases.add(
            cursor, release, archive_sha256="", fingerprint="", manifest=manifest, topics={}, by="ann", state=state,
            replay_from=start,
        )  # fmt: skip


def batches(store: ControlStore, release: ReleaseId, *ends: Offsets, every: float = 10.0, **more: Any) -> None:
    """A batch every so many seconds, the last one now."""
    lease = leases.acquire(store, driver_lease(release), Owner.this_process(), 3600)
    for batch, end in enumerate(ends):
        told = replace(facts(batch, records=100), **more)
        positions.record(store, lease, Position(str(release), batch, end), told)
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.positions set committed_at = clock_timestamp() - (%s - batch) * %s * interval '1 second' "
            "where job = %s and number = %s",
            (len(ends) - 1, every, release.job, release.number),
        )


@pytest.mark.stack
def test_a_replay_is_measured_by_what_it_and_the_live_one_have_committed(
    store: ControlStore, release: ReleaseId
) -> None:
    candidate = ReleaseId(release.job, 2)
    made(store, release, "live")
    made(store, candidate, "replaying", {"t": {0: 1_000, 1: 0}})
    batches(store, release, {"t": {0: 8_900, 1: 1_000}}, {"t": {0: 9_000, 1: 1_000}})
    assert str(catch_up.of(store, candidate)) == "replay 0 % done, 9,000 records left"
    batches(store, candidate, {"t": {0: 2_000, 1: 0}}, {"t": {0: 4_000, 1: 200}})
    found = catch_up.of(store, candidate)
    assert found is not None
    assert (found.kind, found.read, found.left, found.live) == ("replay", 3_200, 5_800, str(release))
    assert (round(found.rate or 0), round(found.growth)) == (220, 10)
    assert catch_up.of(store, release) is None  # the live one keeps up


@pytest.mark.stack
def test_what_the_live_release_does_not_read_is_left_up_to_its_end(store: ControlStore, release: ReleaseId) -> None:
    candidate = ReleaseId(release.job, 2)
    made(store, release, "live")
    made(store, candidate, "replaying", {"t": {0: 0}, "more": {0: 0}})
    batches(store, release, {"t": {0: 50}, "dropped": {0: 7}})
    batches(store, candidate, {"t": {0: 20}, "more": {0: 5}}, lag={"t": {0: 999}, "more": {0: 12}})
    found = catch_up.of(store, candidate)
    assert found is not None
    assert (found.read, found.left) == (25, 30 + 12)


@pytest.mark.stack
@pytest.mark.parametrize("state", ["following", "standby"])
def test_a_follower_and_a_standby_are_shown_behind_the_live_one(
    store: ControlStore, release: ReleaseId, state: Any
) -> None:
    follower = ReleaseId(release.job, 2)
    made(store, release, "live")
    made(store, follower, state, {"t": {0: 0}})
    batches(store, release, {"t": {0: 100}}, {"t": {0: 200}})
    batches(store, follower, {"t": {0: 50}}, {"t": {0: 150}})
    assert str(catch_up.of(store, follower)) == f"follows {release}, 50 records behind"


@pytest.mark.stack
@pytest.mark.parametrize(("kind", "shown"), [("Raw", "landing 1 %"), ("Stream", "catching up: 1 %")])
def test_a_live_release_far_from_the_end_of_its_topics_is_shown(
    store: ControlStore, release: ReleaseId, kind: str, shown: str
) -> None:
    made(store, release, "live", kind=kind)
    batches(store, release, {"t": {0: 100}}, {"t": {0: 200}}, lag={"t": {0: 10_000}}, records_per_second=10.0)
    assert str(catch_up.of(store, release)).startswith(f"{shown} done, 10,000 records left, 10 records/s")
    assert catch_up.read(store, ["another_job"]) == {}


@pytest.mark.stack
def test_the_rate_is_of_the_last_minutes_or_of_the_last_two_batches(store: ControlStore, release: ReleaseId) -> None:
    candidate = ReleaseId(release.job, 2)
    made(store, release, "live")
    made(store, candidate, "replaying", {"t": {0: 0}})
    batches(store, release, {"t": {0: 10_000}})
    batches(store, candidate, {"t": {0: 1_000}}, {"t": {0: 2_000}}, {"t": {0: 2_400}}, every=400.0)
    found = catch_up.of(store, candidate)
    assert found is not None
    assert found.rate == pytest.approx(1.0)
