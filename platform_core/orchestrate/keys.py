"""How declared things are called in Dagster. A job has three nodes: table, live release, candidate."""

from __future__ import annotations

import dagster as dg

SOURCES = "sources"
ANALYTICS = "analytics"
OVERVIEW = dg.AssetKey(["overview", "streams"])


def topic_key(topic: str) -> dg.AssetKey:
    return dg.AssetKey(["topics", topic])


def table_key(table: str) -> dg.AssetKey:
    return dg.AssetKey(["tables", table])


def live_key(job: str) -> dg.AssetKey:
    return dg.AssetKey(["releases", f"{job}_live"])


def candidate_key(job: str) -> dg.AssetKey:
    return dg.AssetKey(["releases", f"{job}_candidate"])
