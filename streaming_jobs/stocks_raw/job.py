"""Topic `stocks` as it came, kept for replays that reach further back than the broker does.

Every record is here, also what `stock_stats` rejects: bytes are not read, no record is late.
"""

from __future__ import annotations

from ingest.topics import STOCKS
from platform_core.declare import Raw, StreamingJob, as_landed, raw_table

stocks_raw = StreamingJob(
    name="stocks_raw",
    inputs={"records": Raw(STOCKS)},
    transform=as_landed,
    output=raw_table("stocks_raw", STOCKS),
    updates_every="5 seconds",
    description="Lands the trades, byte by byte.",
)
