"""A release's records as its query reads them from a real broker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from platform_core.names import ReleaseId
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.source.kafka_source import KafkaStream
from tests.conftest import Broker
from tests.testing import jobs

pytestmark = pytest.mark.stack
MANY = 9


def test_a_batch_of_many_partitions_makes_no_more_tasks_than_there_are_processors(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.create("many_partitions", partitions=MANY)
    for partition in range(MANY):
        broker.produce(topic, (b"ada", b'{"user": "ada", "amount": 1}'), partition=partition)
    read = replace(jobs.BOUGHT, topic=replace(jobs.PURCHASES, name=topic, partitions=MANY))
    job = replace(jobs.once, inputs={"purchases": read})
    seen: list[tuple[int, int]] = []

    def process(frame: DataFrame, _: int) -> None:
        seen.append((frame.count(), frame.rdd.getNumPartitions()))

    records = KafkaStream(spark, broker.settings, job, ReleaseId(job.name, 1)).rows("purchases", None)
    query = ReleaseQuery(job, records, tmp_path / "checkpoint", process)
    query.start(once=True)
    query.watch(lambda: False)
    assert seen == [(MANY, spark.sparkContext.defaultParallelism)]
