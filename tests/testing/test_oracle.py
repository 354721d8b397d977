"""The oracle looks up what the release looks up."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from platform_core.testing import at, record
from platform_core.testing.oracle import Versions
from platform_core.testing.topics import ScriptTopics
from tests.testing.jobs import NAMES, greeted


def test_a_null_finds_no_version_not_even_of_the_key_none(spark: SparkSession, tmp_path: Path) -> None:
    topics = ScriptTopics(greeted(), tmp_path)
    topics.append([record(NAMES, key="None", value={"name": "nobody"}, second=0)])
    records = topics.between(spark, {}, topics.end(0)).withColumn("batch", F.lit(0))
    versions = Versions(records, greeted().lookups["names"])
    assert versions.of({"user": "None", "at": at(1)}, known_by=0) == {"name": "nobody"}
    assert versions.of({"user": None, "at": at(1)}, known_by=0) == {"name": "?"}
    assert versions.changes({"user": None, "at": at(1)}) == set()
