"""What generators make, without a broker."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from datetime import datetime
from itertools import islice, pairwise, takewhile
from random import Random
from typing import Any

import pytest

from ingest.generators import clicks, heartbeats, lines, results, stocks
from ingest.generators.kinds import GENERATORS
from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import PAGE_VIEWS, RESULT_CLICKS, SEARCHES, USER_PROFILES

START = 1_700_000_000_000
ALL = [*({**GENERATORS, "clicks": clicks.of_users(100), "lines": lines.of_words(500)}).values()]

every_generator = pytest.mark.parametrize("generator", ALL, ids=lambda one: one.name)


def first(generator: Generator, count: int, seed: int = 1, rate: float | None = None) -> list[GeneratedRecord]:
    return list(islice(generator.records(seed, START, rate or generator.rate), count))


def digest(records: list[GeneratedRecord]) -> str:
    return hashlib.sha256(repr([tuple(record) for record in records]).encode()).hexdigest()[:16]


def parsed(record: GeneratedRecord) -> Any:
    return json.loads(record.value or b"null")


@every_generator
def test_the_same_seed_gives_the_same_bytes(generator: Generator) -> None:
    assert first(generator, 2000) == first(generator, 2000)


@every_generator
def test_another_seed_gives_other_records(generator: Generator) -> None:
    assert first(generator, 200, seed=1) != first(generator, 200, seed=2)


KNOWN = {
    "stocks": "61df1442323e8ead",
    "clicks": "54911fb5f13c4c45",
    "lines": "894e474be9cfd785",
    "logs": "a5aca781ac47981f",
    "heartbeats": "299bd7304f412e82",
    "results": "13cad00cee0342bc",
    "logins": "87fac9ded96763ce",
    "connections": "4574e1f2055471db",
    "machines": "010e46c6908008d5",
}


@every_generator
def test_a_seed_means_the_same_records_on_every_machine_and_for_ever(generator: Generator) -> None:
    assert digest(first(generator, 2000)) == KNOWN[generator.name]


@every_generator
def test_timestamps_begin_at_the_start_and_never_go_back(generator: Generator) -> None:
    times = [record.timestamp_ms for record in first(generator, 5000)]
    assert times == sorted(times)
    assert START <= times[0] < START + 1000


@every_generator
@pytest.mark.parametrize("rate", [50, 1000, 4000])
def test_the_rate_is_kept(generator: Generator, rate: float) -> None:
    # Clicks begin with every profile at once and sessions take 10 s to pile up: look at what comes after that.
    until = START + 12_000 + 1_000_000 // rate * 10
    made = takewhile(lambda record: record.timestamp_ms < until, generator.records(1, START, rate))
    settled = sum(record.timestamp_ms >= START + 12_000 for record in made)
    assert settled / (until - START - 12_000) * 1000 == pytest.approx(rate, rel=0.05)


@every_generator
def test_every_record_goes_to_a_declared_topic_of_the_generator(generator: Generator) -> None:
    made = {record.topic for record in first(generator, 5000)}
    assert made == {topic.name for topic in generator.topics}


@every_generator
def test_a_malformed_value_is_nothing_that_the_generator_makes(generator: Generator) -> None:
    random = Random(1)
    values = {generator.malformed(random) for _ in range(100)}
    assert len(values) > 2
    assert values.isdisjoint(record.value for record in first(generator, 5000))


def test_each_tick_has_one_ask_for_every_ticker_100_ms_after_the_one_before() -> None:
    ticks: dict[int, list[str]] = defaultdict(list)
    for record in first(stocks.STOCK_TRADES, 5000)[:-100]:
        if parsed(record)["type"] == "ASK":
            ticks[record.timestamp_ms].append(parsed(record)["ticker"])
    assert list(ticks)[:3] == [START, START + 100, START + 200]
    assert all(tickers == list(stocks.TICKERS) for tickers in list(ticks.values())[:-1])


def test_a_bid_never_comes_without_the_ask_of_its_ticker_and_tick_and_is_below_it() -> None:
    trades = [(record, parsed(record)) for record in first(stocks.STOCK_TRADES, 5000)]
    bids = [place for place, (_, trade) in enumerate(trades) if trade["type"] == "BID"]
    assert 0.15 < len(bids) / len(trades) < 0.25
    for place in bids:
        (before, ask), (record, bid) = trades[place - 1], trades[place]
        assert (ask["type"], ask["ticker"], before.timestamp_ms) == ("ASK", bid["ticker"], record.timestamp_ms)
        assert bid["price"] < ask["price"]


def test_prices_start_at_5000_and_walk_in_small_steps() -> None:
    prices: dict[str, list[float]] = defaultdict(list)
    for trade in map(parsed, first(stocks.STOCK_TRADES, 20_000)):
        if trade["type"] == "ASK":
            prices[trade["ticker"]].append(trade["price"])
    for walk in prices.values():
        assert walk[0] == pytest.approx(5000, abs=6)
        assert max(abs(after - before) for before, after in pairwise(walk)) <= 6
        assert len(set(walk)) > len(walk) / 2
        assert max(walk) - min(walk) > 20


def test_a_walk_never_ends_below_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stocks, "START_CENTS", 2_00)
    assert all(parsed(record)["price"] > 0 for record in first(stocks.STOCK_TRADES, 20_000))


def test_a_trade_carries_its_ticker_as_key() -> None:
    assert all(record.key == parsed(record)["ticker"].encode() for record in first(stocks.STOCK_TRADES, 100))


def test_views_follow_searches_within_and_outside_a_second_with_both_ends_of_it() -> None:
    made = first(clicks.of_users(1000), 50_000, rate=50)
    searches: dict[bytes, list[int]] = defaultdict(list)
    apart: Counter[int] = Counter()
    for record in made:
        if record.topic == SEARCHES.name:
            searches[record.key or b""].append(record.timestamp_ms)
        elif record.topic == PAGE_VIEWS.name:
            apart.update(record.timestamp_ms - at for at in searches[record.key or b""][-3:])
    assert apart[0] > 0
    assert apart[1000] > 0
    assert apart[1001] + apart[1002] > 0
    assert sum(n for ms, n in apart.items() if ms <= 1000) > 1000
    assert sum(n for ms, n in apart.items() if 1000 < ms <= 10_000) > 1000


def test_some_views_have_no_search_at_all() -> None:
    made = first(clicks.of_users(10_000), 20_000)
    searching = {record.key for record in made if record.topic == SEARCHES.name}
    assert any(record.topic == PAGE_VIEWS.name and record.key not in searching for record in made)


def test_profiles_come_first_change_in_between_and_are_deleted_at_times() -> None:
    made = first(clicks.of_users(100), 20_000)
    assert {record.topic for record in made[:90]} == {USER_PROFILES.name}
    later = [record for record in made[90:] if record.topic == USER_PROFILES.name]
    assert 0.1 < sum(record.value is None for record in later) / len(later) < 0.3
    assert len(later) > 100


def test_every_tenth_user_never_has_a_profile_and_looks_at_pages_all_the_same() -> None:
    made = first(clicks.of_users(100), 20_000)
    known = {int(record.key or b"0") for record in made if record.topic == USER_PROFILES.name}
    viewing = {int(record.key or b"0") for record in made if record.topic == PAGE_VIEWS.name}
    assert viewing - known == {user for user in range(1, 101) if user % 10 == 0}


def test_clicks_carry_their_user_as_key() -> None:
    made = [record for record in first(clicks.of_users(100), 2000) if record.value is not None]
    assert all(record.key == str(parsed(record)["user_id"]).encode() for record in made)


def test_words_come_as_often_as_their_rank_says() -> None:
    words: Counter[str] = Counter()
    for record in first(lines.of_words(500), 20_000):
        words.update((record.value or b"").decode().lower().replace(",", "").replace(".", "").split())
    assert words["the"] / words["of"] == pytest.approx(2, rel=0.05)
    assert words["the"] / words["été"] == pytest.approx(lines.words_of(500).index("été") + 1, rel=0.1)
    assert len(words) == 500


def test_a_large_vocabulary_has_no_word_twice() -> None:
    assert len(set(lines.words_of(50_000))) == 50_000


def test_clicks_on_results_follow_searches_within_and_outside_10_seconds_with_both_ends_of_it() -> None:
    searches: dict[bytes, list[int]] = defaultdict(list)
    apart: Counter[int] = Counter()
    for record in first(results.SEARCH_RESULTS, 100_000):
        if record.topic == SEARCHES.name:
            searches[record.key or b""].append(record.timestamp_ms)
        else:
            apart.update(record.timestamp_ms - at for at in searches[record.key or b""][-3:])
    assert apart[0] > 0
    assert apart[10_000] > 0
    assert sum(n for ms, n in apart.items() if ms <= 10_000) > 1000
    assert sum(n for ms, n in apart.items() if 10_000 < ms <= 12_000) > 1000


def test_a_click_may_follow_two_searches_of_its_user() -> None:
    searches: dict[bytes, list[int]] = defaultdict(list)
    followed: Counter[int] = Counter()
    for record in first(results.SEARCH_RESULTS, 20_000):
        known = searches[record.key or b""]
        if record.topic == SEARCHES.name:
            known.append(record.timestamp_ms)
        else:
            followed[sum(record.timestamp_ms - at <= 10_000 for at in known)] += 1
    assert followed[1] > followed[2] > 500


def test_results_are_clicked_as_often_as_their_place_says() -> None:
    made = [record for record in first(results.SEARCH_RESULTS, 50_000) if record.topic == RESULT_CLICKS.name]
    clicked = Counter(parsed(record)["result"] for record in made)
    (most, often), (_, seconds), *_ = clicked.most_common()
    assert (most, len(clicked)) == ("shop.example", 5)
    assert often / seconds == pytest.approx(2, rel=0.1)


def test_heartbeats_are_seldom_late_by_hours_and_one_in_a_thousand_by_more_than_three() -> None:
    made = first(heartbeats.DEVICE_HEARTBEATS, 20_000)
    hours = [(one.timestamp_ms / 1000 - datetime.fromisoformat(parsed(one)["at"]).timestamp()) / 3600 for one in made]
    assert min(hours) >= 0
    assert sum(late > 3 for late in hours) == 20
    assert max(hours) > 24
    assert 0.03 < sum(0.01 < late <= 2 for late in hours) / len(made) < 0.06


def test_a_device_says_now_up_now_down() -> None:
    said: dict[str, list[str]] = defaultdict(list)
    for beat in map(parsed, first(heartbeats.DEVICE_HEARTBEATS, 4000)):
        said[beat["device_id"]].append(beat["status"])
    assert len(said) == heartbeats.DEVICES
    assert all(set(statuses) == {"UP", "DOWN"} for statuses in said.values())
    changes = [before != now for statuses in said.values() for before, now in pairwise(statuses)]
    assert 0.03 < sum(changes) / len(changes) < 0.07
