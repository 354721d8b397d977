"""What Spark's log leaves out: what it calls an error or a warning, and is how a healthy release works.

A batch that may not begin is refused by raising StopRequested inside it: Spark knows no other way to end a query
between its plan and its batch. py4j and Spark would tell it as an error, each with a traceback.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from platform_core.streaming.driver.lease_monitor import StopRequested

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
_EXECUTION = f"{_RUNTIME}.MicroBatchExecution"
_TRIGGER = f"{_RUNTIME}.ProcessingTimeExecutor"  # "falling behind", at each batch that takes longer than the trigger
_STATE = "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer"  # a line a new key
_PY4J = logging.getLogger("py4j.clientserver")


def configure(spark: SparkSession) -> None:
    """Once a session."""
    _set(spark, _TRIGGER, "ERROR")
    _set(spark, _STATE, "ERROR")
    if not any(isinstance(one, _WithoutRefusals) for one in _PY4J.filters):
        _PY4J.addFilter(_WithoutRefusals())


def refused(spark: SparkSession) -> None:
    """The query ends without a word. Should anything else end it, `ReleaseQuery.watch` raises what did."""
    _set(spark, _EXECUTION, "OFF")


def started(spark: SparkSession) -> None:
    _set(spark, _EXECUTION, "WARN")


class _WithoutRefusals(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], StopRequested))


def _set(spark: SparkSession, name: str, level: str) -> None:
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(name, log4j.Level.toLevel(level))
