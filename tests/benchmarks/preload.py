"""Histories of the three jobs' inputs, the same for a size: what the Kafka Streams peer generates, in our own formats.

Same event times, distributions and partitions as the peer's `Gen`, so that both work on the same amount of state. Two
differences: every trade is an ask, as the peer aggregates bids too and weir does not; no sentinels.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from confluent_kafka import Producer

from ingest.generators.stocks import TICKERS
from ingest.topics import PAGE_VIEWS, SEARCHES, STOCKS, USER_PROFILES, WORDCOUNT_INPUT
from platform_core.declare import Topic
from platform_core.release import topics
from platform_core.settings import Settings

BASE_MS = 1_700_000_000_000
TICK_MS = 100
VOCABULARY = 10_000
USERS_WITHOUT_PROFILE = 50  # one of that many
_CLUMP = 20_000

Record = tuple[str, bytes | None, bytes, int]  # topic, key, value, timestamp


def stocks(count: int) -> Iterator[Record]:
    draw, topic = Random(1).random, STOCKS.name
    tenths = {ticker.encode(): 1000 + 500 * rank for rank, ticker in enumerate(TICKERS)}
    tickers = list(tenths)
    for number in range(count):
        ticker = tickers[number % len(tickers)]
        price = tenths[ticker] = min(max(tenths[ticker] + int(draw() * 11) - 5, 100), 9900)
        value = b'{"type":"ASK","ticker":"%s","price":%d.%d,"size":%d}'
        size = 100 * (1 + int(draw() * 10))
        yield topic, ticker, value % (ticker, *divmod(price, 10), size), BASE_MS + number // len(tickers) * TICK_MS


def lines(count: int) -> Iterator[Record]:
    """5 to 15 words, the n-th commonest 1/n as often as the first, which is "the"; some capitals and punctuation."""
    random, topic = Random(1), WORDCOUNT_INPUT.name
    words = ["the", *(_word(rank) for rank in range(1, VOCABULARY))]
    weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
    pool = random.choices(words, cum_weights=weights, k=1_000_003)  # drawn once: drawing each word costs most of it
    at = 0
    for number in range(count):
        length = 5 + int(random.random() * 11)
        at = (at + length) % (len(pool) - 20)
        text = " ".join(pool[at : at + length])
        value = f"{text[0].upper()}{text[1:]}.".replace(" ", ", " if number % 3 else "; ", 1)
        yield topic, None, value.encode(), BASE_MS + number


def clicks(views: int, profiles: int) -> Iterator[Record]:
    """Profiles an hour before; a view every 2 ms, a sixth as many searches, of which 60 % are followed by a view of the
    same user within 1.5 s."""
    random = Random(1)
    yield from (_profile(random, user) for user in range(profiles))
    users = profiles + max(1, profiles // USERS_WITHOUT_PROFILE)
    due: list[tuple[int, int]] = []
    for number in range(views):
        at = BASE_MS + 2 * number
        if number % 6 == 0:
            yield _search(random, int(random.random() * users), at, due)
        user = heapq.heappop(due)[1] if due and due[0][0] <= at else int(random.random() * users)
        page = b"section%d/page%d.html" % (int(random.random() * 50), int(random.random() * 2000))
        yield PAGE_VIEWS.name, b"%d" % user, b'{"user_id":%d,"page":"%s"}' % (user, page), at


def _search(random: Random, user: int, at: int, due: list[tuple[int, int]]) -> Record:
    if random.random() < 0.6:
        heapq.heappush(due, (at + int(random.random() * 1501), user))
    terms = b"term%d term%d" % (int(random.random() * 5000), int(random.random() * 5000))
    return SEARCHES.name, b"%d" % user, b'{"user_id":%d,"search_terms":"%s"}' % (user, terms), at


def _profile(random: Random, user: int) -> Record:
    interests = ", ".join(f'"{random.choice(_INTERESTS)}"' for _ in range(2))
    zipcode = 10_000 + int(random.random() * 89_999)
    value = f'{{"user_id":{user},"user_name":"user{user}","zipcode":"{zipcode}","interests":[{interests}]}}'
    return USER_PROFILES.name, b"%d" % user, value.encode(), BASE_MS - 3_600_000 + user


_INTERESTS = ("surfing", "hiking", "chess", "cooking", "running", "music", "film", "travel", "sailing", "ski")


def _word(rank: int) -> str:
    """A distinct pronounceable word."""
    rank, found = rank + 75, ""
    while rank:
        rank, place = divmod(rank, 75)
        found += "bcdfgklmnprstvz"[place % 15] + "aeiou"[place // 15]
    return found


def provide(settings: Settings, wanted: tuple[Topic, ...], records: Iterator[Record]) -> int:
    """Writes the records to their topics, created as declared; how many they were."""
    topics.ensure(settings, wanted)
    producer = Producer(
        {
            "bootstrap.servers": settings.kafka.servers,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "batch.size": 131_072,  # as the peer's: compressed or larger ones would be read at another cost
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    count = 0
    for count, (topic, key, value, at) in enumerate(records, 1):
        while True:
            try:
                producer.produce(topic, value, key, timestamp=at)
                break
            except BufferError:
                producer.poll(0.05)
        if count % _CLUMP == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("The broker did not take all records within a minute.")
    return count
