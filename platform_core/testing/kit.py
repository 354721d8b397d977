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
from platform_core.declare.agreement import Declared, disagreements
from platform_core.errors import BatchFailed, DeclarationError
from platform_core.settings import ROOT, Settings
from platform_core.streaming.batch.author_errors import in_brief
from platform_core.streaming.transform.columns import check
from platform_core.testing.at_rest import performed_at_rest
from platform_core.testing.result import Result
from platform_core.testing.script import Script, Step, parted, records_of
from platform_core.testing.stage import Stage
from platform_core.testing.topics import ScriptTopics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOUND: dict[int, StreamingJob] = {}  # that were checked; by identity, as a job has no hash
_PARTITIONS = "spark.sql.shuffle.partitions"
# Forgetting the state at a crash holds a lock that a maintenance task at hand may want; Spark then waits 360 s for it.
_PATIENCE = tuple(f"spark.sql.streaming.stateStore.maintenance{by}Timeout" for by in ("Shutdown", "ForceShutdown"))


class Kit:
    """Each run has a folder of its own under `folder`: nothing is left from one to the next."""

    def __init__(self, spark: Callable[[], SparkSession], folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._numbers = count()

    def run(self, job: StreamingJob, script: Script, *, each: Step | None = None, partitions: int = 1) -> Result:
        """The job over the script as a stream, on the real engine; `partitions` of its state.

        `each=BATCH` makes a batch of every record, `each=QUIET` lets the stream come to rest after each.
        """
        settings = Settings(home=self._folder / f"run-{next(self._numbers)}", root=ROOT)
        with _set(_at_home(self._spark()), _PARTITIONS, str(partitions)) as spark:
            checked(job, spark)
            return Stage(spark=spark, job=job, settings=settings).perform(parted(script, each))

    def run_as_batch(self, job: StreamingJob, script: Script) -> Result:
        """The transform over all records of the script at once; boundaries, clock and crashes mean nothing here."""
        with _set(_at_home(self._spark()), _PARTITIONS, "1") as spark:
            checked(job, spark)
            topics = ScriptTopics(job, self._folder / f"batch-{next(self._numbers)}")
            topics.append(records_of(script))
            with _in_brief(job):
                return performed_at_rest(job, topics.between(spark, {}, topics.end(0)))


def checked(job: StreamingJob, spark: SparkSession) -> None:
    """What `weir check` refuses is refused here too, before a record is read; once a job."""
    if _SOUND.get(id(job)) is job:
        return
    found = [str(one) for one in check(job, spark)]
    found += [f"{what}: {wrong}" for what, wrong in disagreements(Declared({job.name: job}, {}, {}))]
    if found:
        raise DeclarationError("; ".join(found) + ".", remedy=f"`weir check {job.name}` says the same.")
    _SOUND[id(job)] = job


@contextmanager
def _in_brief(job: StreamingJob) -> Generator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise BatchFailed(
            f"{job.name}: the batch failed with {in_brief(error)}.", remedy="The whole error stands above this one."
        ) from error


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
