"""Asks, and at times bids, of ten tickers: every price is a random walk with a fresh spread at each tick."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import STOCKS

TICKERS = ("MMM", "ABT", "ABBV", "ACN", "ATVI", "AYI", "ADBE", "AAP", "AES", "AET")
START_CENTS = 5000_00
STEP_CENTS = 5_00  # the most that a price moves in a tick
SPREAD_CENTS = 50
FLOOR_CENTS = 1_00  # a walk that reaches it turns back, so that a bid stays positive
BIDS = 0.25  # of the asks have a bid beside them
TICK_MS = 100
RATE = len(TICKERS) * (1 + BIDS) * 1000 / TICK_MS

_TRADE = b'{"type":"%s","ticker":"%s","price":%d.%02d,"size":%d}'
_NOT_A_TRADE = (
    b'{"type":"ASK","ticker":"MMM","pri',
    b'{"type":"ASK","ticker":"MMM","price":"plenty","size":100}',
    b'{"type":"ASK","ticker":"MMM","price":-1.00,"size":100}',
    b'{"type":"HOLD","ticker":"MMM","price":5000.00,"size":100}',
    b'{"type":"ASK","price":5000.00,"size":100}',
    b"5000.00",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    """At RATE a tick comes every 100 ms; at another rate, ticks are closer or wider apart."""
    draw, topic = Random(f"stocks {seed}").random, STOCKS.name
    tick_ms = TICK_MS * RATE / rate
    cents = {ticker.encode(): START_CENTS for ticker in TICKERS}
    for tick in count():
        at = start_ms + int(tick * tick_ms)
        for ticker, before in cents.items():
            now = cents[ticker] = max(FLOOR_CENTS, before + int(draw() * (2 * STEP_CENTS + 1)) - STEP_CENTS)
            spread = 1 + int(draw() * SPREAD_CENTS)
            yield GeneratedRecord(topic, ticker, _trade(b"ASK", ticker, now + spread, draw()), at)
            if draw() < BIDS:
                yield GeneratedRecord(topic, ticker, _trade(b"BID", ticker, now - spread, draw()), at)


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_TRADE)


def _trade(side: bytes, ticker: bytes, cents: int, drawn: float) -> bytes:
    return _TRADE % (side, ticker, *divmod(cents, 100), 1 + int(drawn * 100))


STOCK_TRADES = Generator("stocks", (STOCKS,), RATE, records, malformed, __doc__)
