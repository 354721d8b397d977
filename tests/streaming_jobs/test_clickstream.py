from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.topics import PAGE_VIEWS, SEARCHES, USER_PROFILES
from platform_core.testing import BATCH, END, Kit, record
from streaming_jobs.clickstream.job import clickstream, views_with_searches
from tests.streaming_jobs.conftest import Batch, Row, TableOf

ANN, BOB, CIM, DAN, EVE = 1, 2, 3, 4, 5


def view(user: int, page: str, *, second: float) -> Row:
    return {"user_id": user, "page": page, "second": second}


def search(user: int, terms: str, *, second: float) -> Row:
    return {"user_id": user, "search_terms": terms, "second": second}


def row(offset: int, user: int, page: str, viewed: float, terms: str = "", searched: float | None = None) -> Any:
    return (f"clicks.pages.views-0-{offset}", user, terms, page, viewed, searched)


@pytest.fixture
def table(batch: Batch, table_of: TableOf) -> Any:
    def of(views: list[Row], searches: list[Row]) -> list[tuple[Any, ...]]:
        return table_of(views_with_searches(views=batch(PAGE_VIEWS, views), searches=batch(SEARCHES, searches)))

    return of


def test_a_search_up_to_one_second_before_the_view_led_to_it(table: Any) -> None:
    apart = {ANN: 0, BOB: 0.001, CIM: 0.5, DAN: 0.999, EVE: 1}
    found = table(
        [view(user, "/shoes", second=2) for user in apart],
        [search(user, "shoes", second=2 - before) for user, before in apart.items()],
    )
    assert found == [row(place, user, "/shoes", 2, "shoes", 2 - apart[user]) for place, user in enumerate(apart)]


def test_an_earlier_search_and_one_after_the_view_did_not(table: Any) -> None:
    apart = {ANN: -0.001, BOB: -1, CIM: 1.001, DAN: 1.5, EVE: 60}
    found = table(
        [view(user, "/shoes", second=2) for user in apart],
        [search(user, "shoes", second=2 - before) for user, before in apart.items()],
    )
    assert found == [row(place, user, "/shoes", 2) for place, user in enumerate(apart)]


def test_where_a_second_of_the_clock_ends_makes_no_difference(table: Any) -> None:
    pairs = [(viewed, round(viewed - apart, 3)) for viewed in (2, 2.001, 2.999, 3) for apart in (0, 0.4, 1)]
    found = table(
        [view(user, "/a", second=viewed) for user, (viewed, _) in enumerate(pairs)],
        [search(user, "shoes", second=searched) for user, (_, searched) in enumerate(pairs)],
    )
    expected = [row(user, user, "/a", viewed, "shoes", searched) for user, (viewed, searched) in enumerate(pairs)]
    assert found == sorted(expected, key=repr)


def test_a_view_leaves_one_row_for_each_search(table: Any) -> None:
    searches = [search(ANN, "red", second=1.2), search(ANN, "shoes", second=1.6), search(ANN, "old", second=0.5)]
    assert table([view(ANN, "/shoes", second=2)], searches) == [
        row(0, ANN, "/shoes", 2, "red", 1.2),
        row(0, ANN, "/shoes", 2, "shoes", 1.6),
    ]


def test_a_search_leads_to_every_view_of_the_next_second(table: Any) -> None:
    views = [view(ANN, "/a", second=1), view(ANN, "/b", second=1.5), view(ANN, "/c", second=9)]
    assert table(views, [search(ANN, "shoes", second=1)]) == [
        row(0, ANN, "/a", 1, "shoes", 1),
        row(1, ANN, "/b", 1.5, "shoes", 1),
        row(2, ANN, "/c", 9),
    ]


def test_a_search_of_somebody_else_does_not_count(table: Any) -> None:
    assert table([view(ANN, "/a", second=2)], [search(BOB, "shoes", second=2)]) == [row(0, ANN, "/a", 2)]


def test_the_same_view_twice_stays_apart_by_its_offset(table: Any) -> None:
    twice = [view(ANN, "/a", second=2), view(ANN, "/a", second=2)]
    assert table(twice, []) == [row(0, ANN, "/a", 2), row(1, ANN, "/a", 2)]


def test_searches_alone_leave_nothing(table: Any) -> None:
    assert table([], [search(ANN, "shoes", second=2)]) == []


def test_the_transform_gives_all_declared_columns_but_those_that_the_profile_gives(batch: Batch) -> None:
    frame = views_with_searches(views=batch(PAGE_VIEWS, []), searches=batch(SEARCHES, []))
    taken = clickstream.lookups["profiles"].takes
    declared = [(column.name, column.sql) for column in clickstream.output.columns if column.name not in taken]
    assert sorted(frame.dtypes) == sorted(declared)


def test_an_unknown_user_stands_in_the_row_as_the_profile_says() -> None:
    otherwise = clickstream.lookups["profiles"].otherwise
    assert dict(otherwise) == {"user_id": -1, "user_name": "", "zipcode": "", "interests": None}


def test_a_profile_dated_years_ahead_is_rejected_and_ends_no_waiting(kit: Kit) -> None:
    """The view waits a second for its profile, which comes in a later batch; the far one must not have ended that."""
    far = datetime(2999, 1, 1, tzinfo=UTC)
    script = [
        record(USER_PROFILES, key="2", value={"user_id": BOB, "user_name": "Bob"}, second=far),
        record(PAGE_VIEWS, key="1", value={"user_id": ANN, "page": "/a"}, second=2),
        record(PAGE_VIEWS, key="1", value={"user_id": ANN, "page": "/b"}, second=8),
        BATCH,
        record(USER_PROFILES, key="1", value={"user_id": ANN, "user_name": "Ann"}, second=1),
        END,
    ]
    result = kit.run(clickstream, script)
    assert [(reject.topic, reject.reason) for reject in result.rejects] == [
        ("clicks.user.profile", "event time more than 1 day ahead")
    ]
    assert result.columns("page", "user_name") == [("/a", "Ann"), ("/b", "Ann")]
