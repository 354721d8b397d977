"""What each release committed, and how it gets on: every batch once, bounded, and enough to plan a follower by."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from platform_core.control import leases, positions, progress
from platform_core.control.facts import BatchFacts
from platform_core.control.leases import Lease, driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import Superseded
from platform_core.names import ReleaseId
from tests.control.words import facts

pytestmark = pytest.mark.stack
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
def lease(store: ControlStore, release: ReleaseId) -> Lease:
    return leases.acquire(store, driver_lease(release), Owner.this_process(), 3600)


def at(release: ReleaseId, batch: int) -> Position:
    return Position(
        str(release),
        batch,
        {"t": {0: 10 * batch + 10, 11: 3}},
        {"t": {0: 10 * batch, 11: 0}},
        1000 * batch,
        1500 * batch,
    )


def test_a_position_comes_back_as_it_was_given(store: ControlStore, release: ReleaseId, lease: Lease) -> None:
    positions.record(store, lease, at(release, 0), facts(0), 4)
    assert positions.latest(store, release) == (at(release, 0), 4)


def test_commits_that_were_not_recorded_are_filled_in(store: ControlStore, release: ReleaseId, lease: Lease) -> None:
    positions.record(store, lease, at(release, 0), facts(0), 7)
    positions.fill(store, lease, [(at(release, batch), 7 + batch) for batch in (2, 1, 0)])
    told = positions.history(store, release, 10)
    assert [(one.position, one.table_version) for one in told] == [
        (at(release, batch), 7 + batch) for batch in (2, 1, 0)
    ]
    leases.release(store, lease)
    other = leases.acquire(store, driver_lease(release), Owner.this_process(), 3600)
    with pytest.raises(Superseded):
        positions.fill(store, lease, [(at(release, 3), 10)])
    positions.fill(store, other, [(at(release, 3), 10)])


def test_a_release_without_batches_has_no_position(store: ControlStore, release: ReleaseId) -> None:
    assert positions.latest(store, release) is None
    assert release not in progress.latest(store)


def test_a_follower_walks_the_batches_after_its_own(store: ControlStore, release: ReleaseId, lease: Lease) -> None:
    for batch in range(5):
        positions.record(store, lease, at(release, batch), facts(batch), batch)
    walked = positions.history(store, release, 2, after=1)
    newest = positions.history(store, release, 2)
    assert [committed.position for committed in walked] == [at(release, 2), at(release, 3)]
    assert [committed.position.batch for committed in newest] == [4, 3]


def test_a_batch_recorded_again_after_a_crash_counts_once(
    store: ControlStore, release: ReleaseId, lease: Lease
) -> None:
    positions.record(store, lease, at(release, 0), facts(0, records=5, late=2), 1)
    positions.record(store, lease, at(release, 0), facts(0, records=5, late=2), 1)
    positions.record(store, lease, at(release, 1), facts(1, records=7), 2)
    found = progress.latest(store)[release]
    assert found.totals == {"records_in": 12, "rows_out": 10, "used": 10, "late": 2, "rejected": 0, "filtered": 0}
    assert found.facts.records_in == 7


def test_facts_come_back_as_they_were_given(store: ControlStore, release: ReleaseId, lease: Lease) -> None:
    given = BatchFacts(
        datetime.now(UTC),
        0,
        records_in=9,
        rows_out=3,
        used=6,
        late=1,
        rejected=2,
        filtered=0,
        batch_seconds=0.25,
        lag={"t": {0: 4, 11: 0}},
        watermark_ms=77,
        newest_event_ms=99,
        freshness_seconds=0.5,
        records_per_second=36.0,
    )
    positions.record(store, lease, at(release, 0), given)
    assert progress.latest(store)[release].facts == given
    assert progress.recent(store, release, LONG_AGO) == [given]
    assert given.total_lag == 4


def test_history_keeps_one_row_a_second_and_loses_no_count(
    store: ControlStore, release: ReleaseId, lease: Lease
) -> None:
    for batch in range(30):
        positions.record(store, lease, at(release, batch), facts(batch, records=10, late=1))
    rows = progress.recent(store, release, LONG_AGO)
    assert len(rows) < 30
    assert (sum(row.records_in for row in rows), sum(row.late for row in rows)) == (300, 30)
    assert rows[-1].batch == 29


def test_a_day_of_history_and_the_newest_positions_are_kept(
    store: ControlStore, release: ReleaseId, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "KEPT", 3)
    monkeypatch.setattr(positions, "_SWEEP_EVERY", 10)
    positions.record(store, lease, at(release, 1), facts(1))
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.progress_history set recorded_at = recorded_at - interval '25 hours', "
            "second = second - interval '25 hours' where job = %s",
            (release.job,),
        )
    for batch in range(7, 11):
        positions.record(store, lease, at(release, batch), facts(batch))
    assert [committed.position.batch for committed in positions.history(store, release, 100)] == [10, 9, 8]
    assert all(row.batch >= 7 for row in progress.recent(store, release, LONG_AGO))


def test_recent_begins_where_it_is_told(store: ControlStore, release: ReleaseId, lease: Lease) -> None:
    positions.record(store, lease, at(release, 0), facts(0))
    assert progress.recent(store, release, datetime.now(UTC) + timedelta(hours=1)) == []


def test_a_position_of_an_older_release_reads_without_newer_fields(release: ReleaseId) -> None:
    raw = {"release": str(release), "batch": 1, "offsets": {"t": {"0": 1}}, "start": {}, "watermark_ms": 5}
    assert Position.from_json(json.dumps(raw)) == replace(Position(str(release), 1, {"t": {0: 1}}), watermark_ms=5)
