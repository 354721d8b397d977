"""Searches, at times refined at once, and clicks on their results within and outside 10 seconds; first results most."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from random import Random

from ingest.generators.records import GeneratedRecord, Generator, merged
from ingest.topics import RESULT_CLICKS, SEARCHES

USERS = 500
REFINING = 0.25  # of the searches are followed by a second one within REFINED_MS, so that clicks follow two
REFINED_MS = 3000
CLICKS = 3  # at most, none at least
SOON = 0.8  # of the clicks come within 10 s of the first search, both ends in
SOON_MS, LATER_MS = 10_000, 12_000
RATE = 50.0

RECORDS_A_SESSION = 1 + REFINING + CLICKS / 2

_SEARCH = b'{"user_id":%d,"search_terms":"%s"}'
_CLICK = b'{"user_id":%d,"result":"%s"}'
_QUERIES = tuple(query.encode() for query in ("shoes", "red shoes", "café", "größte lampe", "maps", "winter coats"))
_RESULTS = tuple(
    result.encode() for result in ("shop.example", "wiki.example", "blog.example", "news.example", "forum.example")
)
_WEIGHTS = tuple(accumulate(1 / place for place in range(1, len(_RESULTS) + 1)))
_NEITHER = (b'{"user_id":7,"res', b'["user_id",7]', b'{"result":"shop.example"}', b"7", b"\xff\xfe\x00")


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    """Sessions side by side, merged by time; the rate says how many run at once."""
    random = Random(f"results {seed}")
    yield from merged(_sessions(random, start_ms, RECORDS_A_SESSION * 1000 / rate))


def _sessions(random: Random, start_ms: int, gap_ms: float) -> Iterator[tuple[float, Iterator[GeneratedRecord]]]:
    begins = float(start_ms)
    while True:
        begins += gap_ms * 2 * random.random()
        yield begins, _session(random, 1 + int(random.random() * USERS), int(begins))


def _session(random: Random, user: int, at: int) -> Iterator[GeneratedRecord]:
    draw = random.random
    yield _search(draw(), user, at)
    if draw() < REFINING:
        yield _search(draw(), user, at + int(draw() * (REFINED_MS + 1)))
    for _ in range(int(draw() * (CLICKS + 1))):
        soon = draw() < SOON
        after = int(draw() * (SOON_MS + 1)) if soon else SOON_MS + 1 + int(draw() * (LATER_MS - SOON_MS))
        (result,) = random.choices(_RESULTS, cum_weights=_WEIGHTS)
        yield GeneratedRecord(RESULT_CLICKS.name, b"%d" % user, _CLICK % (user, result), at + after)


def _search(drawn: float, user: int, at: int) -> GeneratedRecord:
    value = _SEARCH % (user, _QUERIES[int(drawn * len(_QUERIES))])
    return GeneratedRecord(SEARCHES.name, b"%d" % user, value, at)


def malformed(random: Random) -> bytes:
    return random.choice(_NEITHER)


SEARCH_RESULTS = Generator("results", (SEARCHES, RESULT_CLICKS), RATE, records, malformed, __doc__)
