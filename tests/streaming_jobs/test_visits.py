from __future__ import annotations

from datetime import timedelta
from typing import Any

from ingest.topics import PAGE_VIEWS
from platform_core.testing import BATCH, CRASH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, Result, at, clock, record
from streaming_jobs.visits.job import visits

ANN, BOB, CIM, DAN, EVE, FAY = 1, 2, 3, 4, 5, 6
OVER_30 = round(30 + 1 / 60_000, 6)  # a millisecond more


def view(user: int, page: str, *, minute: float, **place: Any) -> Record:
    moment = at(0) + timedelta(milliseconds=round(minute * 60_000))
    return record(PAGE_VIEWS, key=user, value={"user_id": user, "page": page}, second=moment, **place)


def table(result: Result) -> list[tuple[Any, ...]]:
    """Users, first and last minute, number of views, first and last page."""
    rows = result.columns("user_id", "started_at", "ended_at", "views", "first_page", "last_page")
    return [(user, _minute(start), _minute(end), *rest) for user, start, end, *rest in rows]


def _minute(moment: Any) -> float:
    return round((moment - at(0)) / timedelta(minutes=1), 6)


def test_views_up_to_30_minutes_apart_are_one_visit_from_the_first_to_the_last(kit: Kit) -> None:
    script = [
        view(ANN, "/a", minute=0),
        view(ANN, "/b", minute=30),
        view(BOB, "/a", minute=0),
        view(BOB, "/b", minute=OVER_30),
        view(CIM, "/alone", minute=7),
        # out of order, over batches: the last one makes one visit of two
        view(DAN, "/third", minute=35),
        view(DAN, "/first", minute=0),
        BATCH,
        view(DAN, "/second", minute=16),
        # in the same millisecond: by partition, then by offset, however they arrive
        view(EVE, "/3", minute=5, partition=2),
        view(EVE, "/2", minute=5, partition=1, offset=101),
        view(EVE, "/1", minute=5, partition=1, offset=102),
        # the same view twice
        view(FAY, "/a", minute=1),
        view(FAY, "/a", minute=1),
        END,
    ]
    result = kit.run(visits, script)
    assert table(result) == [
        (ANN, 0, 30, 2, "/a", "/b"),
        (BOB, 0, 0, 1, "/a", "/a"),
        (BOB, OVER_30, OVER_30, 1, "/b", "/b"),
        (CIM, 7, 7, 1, "/alone", "/alone"),
        (DAN, 0, 35, 3, "/first", "/third"),
        (EVE, 5, 5, 3, "/2", "/3"),
        (FAY, 1, 1, 2, "/a", "/a"),
    ]
    assert result.rows == kit.run_as_batch(visits, script).rows
    assert result.late == 0


def test_a_visit_is_written_once_when_the_clock_is_40_minutes_past_its_last_view(kit: Kit) -> None:
    script = [view(ANN, "/a", minute=0), QUIET, view(ANN, "/b", minute=10), clock(50 * 60)]
    assert kit.run(visits, script).rows == []
    result = kit.run(visits, [*script, clock(50 * 60 + 0.001), view(BOB, "/a", minute=60), QUIET])
    assert table(result) == [(ANN, 0, 10, 2, "/a", "/b")]


def test_a_late_view_counts_until_the_watermark_is_30_minutes_past_it(kit: Kit) -> None:
    """The clock is at minute 60, the watermark at minute 50."""
    before = [view(ANN, "/a", minute=15), view(BOB, "/b", minute=40), clock(60 * 60)]
    result = kit.run(
        visits,
        [
            *before,
            view(ANN, "/late", minute=30),  # ANN's visit was written at minute 55
            view(BOB, "/early", minute=21),
            QUIET,
            view(CIM, "/too late", minute=19),
            QUIET,
            END,
        ],
    )
    assert table(result) == [
        (ANN, 15, 15, 1, "/a", "/a"),
        (ANN, 30, 30, 1, "/late", "/late"),
        (BOB, 21, 40, 2, "/early", "/b"),
    ]
    assert result.late == 1


def test_what_is_no_view_is_rejected(kit: Kit) -> None:
    result = kit.run(
        visits,
        [
            view(ANN, "/a", minute=0),
            record(PAGE_VIEWS, key=None, value={"user_id": ANN, "page": "/b"}, partition=0),
            record(PAGE_VIEWS, key=ANN, value={"page": "/b"}, partition=1),
            view(ANN, "", minute=1, partition=2),
            record(PAGE_VIEWS, key=ANN, value=b'{"user_id":', partition=3, offset=9),
            END,
        ],
    )
    assert [(reject.partition, reject.reason) for reject in result.rejects] == [
        (0, "null key: user_id is needed"),
        (1, "missing field: user_id"),
        (2, "rule page is given"),
        (3, "not JSON of the declared shape (user_id bigint, page string)"),
    ]
    assert table(result) == [(ANN, 0, 0, 1, "/a", "/a")]


def test_crashes_neither_lose_nor_double_views(kit: Kit) -> None:
    script = [
        view(ANN, "/a", minute=0),
        CRASH_AFTER_WRITE,
        view(ANN, "/b", minute=20),
        CRASH,
        view(ANN, "/c", minute=40),
        QUIET,
        CRASH,
        view(BOB, "/a", minute=90),
        CRASH_AFTER_WRITE,
        view(BOB, "/b", minute=91),
        END,
    ]
    assert table(kit.run(visits, script)) == [(ANN, 0, 40, 3, "/a", "/c"), (BOB, 90, 91, 2, "/a", "/b")]
