"""The test kit as a job's author holds it: one list in, one result out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from platform_core.declare import StreamingJob
from platform_core.settings import ROOT, Settings
from platform_core.testing.at_rest import performed_at_rest
from platform_core.testing.result import Result
from platform_core.testing.script import Script, records_of
from platform_core.testing.stage import Stage
from platform_core.testing.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS = "spark.sql.shuffle.partitions"
# Forgetting the state at a crash holds a lock that a maintenance task at hand may want; Spark then waits 360 s for it.
_PATIENCE = tuple(f"spark.sql.streaming.stateStore.maintenance{by}Timeout" for by in ("Shutdown", "ForceShutdown"))


class Kit:
    """Each run has a folder of its own under `folder`: nothing is left from one to the next."""

    def __init__(self, spark: Callable[[], SparkSession], folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._numbers = count()

    def run(self, job: StreamingJob, script: Script, *, partitions: int = 1) -> Result:
        """The job over the script as a stream, on the real engine; `partitions` of its state."""
        settings = Settings(home=self._folder / f"run-{next(self._numbers)}", root=ROOT)
        with _set(_at_home(self._spark()), _PARTITIONS, str(partitions)) as spark:
            return Stage(spark=spark, job=job, settings=settings).perform(script)

    def run_as_batch(self, job: StreamingJob, script: Script) -> Result:
        """The transform over all records of the script at once; boundaries, clock and crashes mean nothing here."""
        with _set(_at_home(self._spark()), _PARTITIONS, "1") as spark:
            topics = Topics(job, self._folder / f"batch-{next(self._numbers)}")
            topics.append(records_of(script))
            return performed_at_rest(job, topics.between(spark, {}, topics.end(0)))


def _at_home(spark: SparkSession) -> SparkSession:
    """Functions of the author's own run in workers: those need this interpreter and its modules."""
    context = spark.sparkContext
    context.pythonExec = sys.executable
    context.environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    for name in _PATIENCE:
        spark.conf.set(name, "2")
    return spark


@contextmanager
def _set(spark: SparkSession, name: str, value: str) -> Generator[SparkSession]:
    former = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield spark
    finally:
        spark.conf.set(name, former or value)
