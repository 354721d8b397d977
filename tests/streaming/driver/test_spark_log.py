"""A batch that is refused, as one is at each first step, stop and cutover, leaves no error in any log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from platform_core.errors import BatchFailed
from platform_core.streaming.driver.lease_monitor import StopRequested
from platform_core.streaming.driver.query import ReleaseQuery
from tests.testing import jobs

EXECUTION = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
TRIGGER = "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor"


@pytest.fixture
def log(spark: SparkSession) -> Iterator[Any]:
    """All that Spark logs meanwhile, at whatever level its loggers let through."""
    log4j = jvm_of(spark).org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    root = context.getConfiguration().getRootLogger()
    written = jvm_of(spark).java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %c %m%n%throwable").build()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, written, "test", False, True)
    appender.start()
    root.addAppender(appender, None, None)
    context.updateLoggers()
    yield written
    root.removeAppender("test")
    context.updateLoggers()


def jvm_of(spark: SparkSession) -> Any:
    return spark._jvm  # pyright: ignore[reportPrivateUsage]


def query(spark: SparkSession, folder: Path, error: Exception) -> ReleaseQuery:
    """One whose first batch raises."""

    def process(_: DataFrame, __: int) -> None:
        raise error

    spark.range(3).write.mode("overwrite").json(str(folder / "numbers"))
    rows = spark.readStream.schema("id LONG").json(str(folder / "numbers"))
    return ReleaseQuery(jobs.once, rows, folder / "checkpoint", process)


def test_a_refused_batch_leaves_no_error_and_no_traceback(
    spark: SparkSession, log: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    refused = query(spark, tmp_path, StopRequested())
    refused.start(once=True)
    refused.watch(lambda: False)
    assert isinstance(refused.failure, StopRequested)
    assert "ERROR" not in log.toString()
    assert "StopRequested" not in log.toString()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_batch_that_fails_after_a_refused_one_is_told_by_spark_and_by_python(
    spark: SparkSession, log: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    refused = query(spark, tmp_path, StopRequested())
    refused.start(once=True)
    refused.watch(lambda: False)
    failing = query(spark, tmp_path, ValueError("a wrong number"))
    failing.start(once=True)
    with pytest.raises(BatchFailed, match="a wrong number"):
        failing.watch(lambda: False)
    assert f"ERROR {EXECUTION}" in log.toString()
    assert "a wrong number" in log.toString()
    assert any("a wrong number" in str(record.exc_info) for record in caplog.records)


def test_spark_does_not_say_that_a_batch_took_longer_than_its_trigger(spark: SparkSession, log: Any) -> None:
    logger = jvm_of(spark).org.apache.logging.log4j.LogManager.getLogger(TRIGGER)
    logger.warn("Current batch is falling behind.")
    logger.error("something else")
    assert "falling behind" not in log.toString()
    assert "something else" in log.toString()
