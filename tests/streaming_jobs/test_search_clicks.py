from __future__ import annotations

from datetime import timedelta
from typing import Any

from ingest.topics import RESULT_CLICKS, SEARCHES
from platform_core.testing import (
    BATCH,
    CRASH,
    CRASH_AFTER_WRITE,
    END,
    QUIET,
    START,
    Kit,
    Record,
    Result,
    Step,
    at,
    clock,
    record,
)
from streaming_jobs.search_clicks.job import search_clicks

ANN, BOB, CIM, DAN, EVE = 1, 2, 3, 4, 5
HOUR = 3600


def search(user: int, query: str, *, second: float, **place: Any) -> Record:
    return record(SEARCHES, key=user, value={"user_id": user, "search_terms": query}, second=second, **place)


def click(user: int, result: str, *, second: float, **place: Any) -> Record:
    return record(RESULT_CLICKS, key=user, value={"user_id": user, "result": result}, second=second, **place)


def table(result: Result) -> list[tuple[Any, ...]]:
    """Queries, hours from the start, ranks, results, clicks."""
    rows = result.columns("query", "hour", "rank", "result", "clicks")
    return [(query, (hour - START) / timedelta(hours=1), *rest) for query, hour, *rest in rows]


def both(kit: Kit, script: list[Step]) -> list[tuple[Any, ...]]:
    """The table, which stream and batch agree on."""
    streamed = kit.run(search_clicks, [*script, END])
    assert streamed.rows == kit.run_as_batch(search_clicks, script).rows
    assert streamed.late == 0
    return table(streamed)


def test_a_click_belongs_to_the_newest_search_of_its_user_in_the_10_seconds_before(kit: Kit) -> None:
    apart = {0: "at once", 10: "10 s", 10.001: "more than 10 s", -0.001: "before"}
    found = both(
        kit,
        [
            *(search(ANN, what, second=100 + 30 * place) for place, what in enumerate(apart.values())),
            *(click(ANN, "x", second=100 + 30 * place + after) for place, after in enumerate(apart)),
            BATCH,
            search(BOB, "first", second=200),
            search(BOB, "refined", second=203),
            BATCH,
            click(BOB, "between", second=202.999),
            click(BOB, "after", second=203),
            click(BOB, "last", second=213),
            search(BOB, "too new", second=214),
            # the same search twice, in the same millisecond another one: of the higher partition, then offset
            search(CIM, "twice", second=200, partition=0),
            search(CIM, "twice", second=200, partition=0),
            click(CIM, "x", second=201),
            search(DAN, "higher partition", second=200, partition=2),
            search(DAN, "lower partition", second=200, partition=1),
            click(DAN, "x", second=201),
            # of somebody else
            search(EVE, "nobody clicked", second=200),
            click(99, "x", second=201),
        ],
    )
    assert found == [
        ("10 s", 0, 1, "x", 1),
        ("at once", 0, 1, "x", 1),
        ("first", 0, 1, "between", 1),
        ("higher partition", 0, 1, "x", 1),
        ("refined", 0, 1, "after", 1),
        ("refined", 0, 2, "last", 1),
        ("twice", 0, 1, "x", 1),
    ]


def test_results_of_a_query_and_hour_are_ranked_by_clicks_and_then_by_name(kit: Kit) -> None:
    script: list[Step] = []
    clicked = ["b", "c", "c", "a", "d", "d", "d"]  # d three times, c twice, a and b once
    for place, result in enumerate(clicked):
        script += [search(place, "shoes", second=60 * place), click(place, result, second=60 * place + 1)]
        script += [QUIET] if place == 3 else []
    script += [
        search(ANN, "Shoes", second=500),  # another query
        click(ANN, "a", second=501),
        click(ANN, "a", second=501),  # sent twice: two clicks
        # the click, not the search, says which hour
        search(BOB, "shoes", second=HOUR - 1),
        click(BOB, "a", second=HOUR - 0.001),
        click(BOB, "b", second=HOUR),
    ]
    assert both(kit, script) == [
        ("Shoes", 0, 1, "a", 2),
        ("shoes", 0, 1, "d", 3),
        ("shoes", 0, 2, "a", 2),
        ("shoes", 0, 3, "c", 2),
        ("shoes", 0, 4, "b", 1),
        ("shoes", 1, 1, "b", 1),
    ]


def test_late_clicks_are_counted_and_an_hours_rows_written_once_15_seconds_of_the_clock_past_it(kit: Kit) -> None:
    script = [
        search(ANN, "shoes", second=100),
        search(BOB, "shoes", second=100),
        QUIET,
        click(ANN, "x", second=106),  # in time: the watermark is at second 95
        clock(112),
        click(BOB, "late", second=106.9),
        click(BOB, "in time", second=107.1),
        clock(HOUR + 14.9),
        clock(HOUR + 15.1),
        END,
    ]
    result = kit.run(search_clicks, script)
    assert table(result) == [("shoes", 0, 1, "in time", 1), ("shoes", 0, 2, "x", 1)]
    assert result.late == 1
    (written,) = [batch for batch in result.batches if batch.changes.num_rows]
    assert written.position.watermark_ms == at(HOUR + 10.1).timestamp() * 1000


def test_what_is_no_search_or_click_is_rejected(kit: Kit) -> None:
    script = [
        search(ANN, "", second=1, partition=0),
        record(SEARCHES, key=ANN, value=b"7", second=1, partition=0),
        click(ANN, "", second=1, partition=0),
        record(RESULT_CLICKS, key=ANN, value={"user_id": ANN}, second=1, partition=0),
        record(RESULT_CLICKS, key=None, value={"user_id": ANN, "result": "x"}, second=1, partition=1),
    ]
    assert [(reject.topic, reject.reason) for reject in kit.run_as_batch(search_clicks, script).rejects] == [
        ("clicks.search", "rule terms are given"),
        ("clicks.search", "not JSON of the declared shape (user_id bigint, search_terms string)"),
        ("search.clicks", "rule result is given"),
        ("search.clicks", "missing field: result"),
        ("search.clicks", "null key: user_id is needed"),
    ]


def test_crashes_neither_lose_nor_double_clicks(kit: Kit) -> None:
    script = [
        search(ANN, "shoes", second=0),
        CRASH_AFTER_WRITE,
        click(ANN, "x", second=1),
        click(ANN, "y", second=2),
        CRASH,
        click(ANN, "y", second=3),
        search(BOB, "maps", second=HOUR + 60),
        CRASH_AFTER_WRITE,
        click(BOB, "z", second=HOUR + 61),
        END,
    ]
    assert table(kit.run(search_clicks, script)) == [
        ("maps", 1, 1, "z", 1),
        ("shoes", 0, 1, "y", 2),
        ("shoes", 0, 2, "x", 1),
    ]
