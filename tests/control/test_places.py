"""Where a release is, input by input: offsets of topics, versions of tables, and the text that carries both."""

from __future__ import annotations

import json

import pytest

from platform_core.control.position import (
    Offsets,
    Place,
    Places,
    Position,
    TableVersion,
    as_places,
    as_text,
    between,
    moved,
    reached,
    same_place,
    told,
)
from platform_core.control.starts import StartPosition

# As 186ad77 wrote it, to the byte.
OF_TOPICS = (
    '{"release":"stock_stats@v1","revision":2,"batch":7,'
    '"offsets":{"a":{"1":2},"stocks":{"0":12,"2":0,"10":3}},"start":{"stocks":{"0":5}},'
    '"watermark_ms":1500,"newest_ms":2500}'
)
TOPICS: Offsets = {"stocks": {0: 12, 10: 3, 2: 0}, "a": {1: 2}}
POSITION = Position("stock_stats@v1", 7, TOPICS, {"stocks": {0: 5}}, 1500, 2500, revision=2)
V4, V5, V6 = (TableVersion("trades@v1", version) for version in (4, 5, 6))
OTHER = TableVersion("trades@v2", 5)


def test_a_position_of_topics_is_the_same_text_as_ever() -> None:
    assert POSITION.to_json() == OF_TOPICS
    assert Position.from_json(OF_TOPICS) == POSITION


def test_a_position_of_before_clocks_and_revisions_is_read() -> None:
    oldest = '{"release":"j@v1","batch":3,"offsets":{"t":{"0":9}},"start":{},"watermark_ms":0}'
    assert Position.from_json(oldest) == Position("j@v1", 3, {"t": {0: 9}})


def test_tables_stand_beside_the_topics_and_come_back() -> None:
    position = Position("j@v1", 3, TOPICS, tables={"trades": V5}, tables_start={"trades": V4})
    raw = json.loads(position.to_json())
    assert raw["tables"] == {"trades": {"release": "trades@v1", "version": 5}}
    assert raw["tables_start"] == {"trades": {"release": "trades@v1", "version": 4}}
    assert raw["offsets"] == json.loads(OF_TOPICS)["offsets"]
    assert Position.from_json(position.to_json()) == position
    assert position.places == {**TOPICS, "trades": V5}
    assert position.began == {"trades": V4}


def test_a_start_of_topics_is_the_same_text_as_ever_and_one_of_tables_comes_back() -> None:
    plain = {"asked": "earliest", "at_ms": None, "offsets": {"t": {"0": 3}}}
    assert StartPosition.of(plain).plain() == plain
    both = StartPosition("earliest", None, {"t": {0: 3}}, {"trades": V4})
    assert StartPosition.of(json.loads(json.dumps(both.plain()))) == both
    assert both.places == {"t": {0: 3}, "trades": V4}


def test_a_line_of_the_offset_log_may_name_both() -> None:
    places: Places = {"t": {0: 3, 11: 5}, "trades": V5}
    assert as_places(json.loads(json.dumps(as_text(places)))) == places


def test_people_are_told_offsets_and_versions() -> None:
    assert told({"trades": V5, "t": {1: 7, 0: 3}}) == "t[0]@3, t[1]@7, trades at trades@v1 version 5"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"t": {0: 3, 1: 0}}, {"t": {0: 3}, "more": {0: 9}}, True),
        ({"t": {0: 3}}, {"t": {0: 4}}, False),
        ({"t": {0: 3}, "trades": V5}, {"t": {0: 3}, "trades": V5}, True),
        ({"t": {0: 3}, "trades": V5}, {"t": {0: 3}, "trades": V6}, False),
        ({"trades": V5}, {"trades": OTHER}, False),
        ({"trades": V5}, {"t": {0: 3}}, False),
    ],
)
def test_releases_are_at_one_place_when_all_that_both_read_is(one: Places, other: Places, same: bool) -> None:
    assert same_place(one, other) is same
    assert same_place(other, one) is same


@pytest.mark.parametrize(
    ("one", "other", "is_reached"),
    [
        ({0: 3}, {0: 3}, True),
        ({0: 3}, {0: 3, 1: 1}, False),
        (V5, V4, True),
        (V4, V5, False),
        (V6, OTHER, False),  # versions of two releases' tables say nothing of each other
        (V6, {0: 1}, False),
        ({0: 1}, V6, False),
    ],
)
def test_a_place_is_reached_when_nothing_of_it_is_left(one: Place, other: Place, is_reached: bool) -> None:
    assert reached(one, other) is is_reached


def test_a_place_between_two_is_neither_behind_the_one_nor_past_the_other() -> None:
    at: Places = {"t": {0: 3}, "trades": V4}
    end: Places = {"t": {0: 9, 1: 5}, "trades": V5}
    assert between(at, {"t": {0: 1, 1: 2}, "trades": TableVersion("trades@v1", 0)}, end) == {
        "t": {0: 3, 1: 2},
        "trades": V4,
    }
    assert between(at, {"t": {0: 99}, "trades": V6}, end) == end
    assert between({}, {"trades": V4}, end) == {"t": {0: 9, 1: 5}, "trades": V4}


def test_a_place_moves_in_what_is_named_of_it() -> None:
    assert moved({0: 3, 1: 4}, {1: 9, 2: 1}) == {0: 3, 1: 9, 2: 1}
    assert moved(V4, V5) == V5
    assert (moved(V4, None), moved({0: 3}, None)) == (V4, {0: 3})
