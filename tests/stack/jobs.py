"""The three main jobs as the tests run them: load for each, and its oracle."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_core.names import ReleaseId
from platform_core.testing.oracle import Closing, Oracle
from tests.stack.running import Platform, Running, job_in

JOBS = ("stock_stats", "clickstream", "word_count")
CLOSING = {"stock_stats": Closing("window_end", "5 seconds"), "clickstream": Closing("viewed_at")}
LOAD = {
    "stocks": ("--rate", "100", "--late", "0.01", "--late-by", "20 seconds", "--malformed", "0.002"),
    "clicks": ("--rate", "60", "--users", "50", "--late", "0.005", "--late-by", "8 seconds", "--malformed", "0.002"),
    "lines": (
        "--rate",
        "20",
    ),
}


def load(platform: Platform) -> list[Running]:
    return [platform.generate(kind, *options) for kind, options in LOAD.items()]


def oracles(spark: SparkSession, platform: Platform, releases: list[ReleaseId]) -> dict[ReleaseId, Oracle]:
    settings = platform.settings
    return {
        release: Oracle(
            spark,
            settings,
            job_in(settings.storage.archive(release) / "code", release.job),
            release,
            CLOSING.get(release.job),
        )
        for release in releases
    }
