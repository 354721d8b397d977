"""What the tables of trading days read, and when a day of the exchange ends."""

from __future__ import annotations

from ingest.topics import STOCKS
from platform_core.declare import RowRule, Stream

ZONE = "America/New_York"  # a trading day ends at its midnight

TRADES = Stream(
    STOCKS,
    rules=(
        RowRule("type is ASK or BID", "type IN ('ASK', 'BID')"),
        RowRule("ticker is given", "ticker <> ''"),
        RowRule("price is positive", "price > 0"),
    ),
)
