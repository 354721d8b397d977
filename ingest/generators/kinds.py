"""Every generator, by the name that `weir generate` takes."""

from __future__ import annotations

from ingest.generators import (
    clicks,
    connections,
    heartbeats,
    lines,
    logins,
    logs,
    machines,
    results,
    stocks,
)
from ingest.generators.records import Generator

GENERATORS: dict[str, Generator] = {
    one.name: one
    for one in (
        stocks.STOCK_TRADES,
        clicks.of_users(),
        lines.of_words(),
        logs.LOG_LINES,
        heartbeats.DEVICE_HEARTBEATS,
        results.SEARCH_RESULTS,
        logins.TRIED_LOGINS,
        connections.HOST_CONNECTIONS,
        machines.READINGS,
    )
}
