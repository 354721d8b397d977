"""One Spark session, set as the platform's measurements say."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from platform_core.errors import SettingsError, SetupError
from platform_core.settings import Settings, use_bundled_java, use_this_python
from platform_core.streaming.driver import spark_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET = "-Xlog:cds*=off -Xlog:cds+dynamic*=off"  # a file of classes for another Java or other jars is not used
LOCAL_FILES_JAR = "hadoop-bare-naked-local-fs-0.1.0.jar"
_STREAMING = "org.apache.spark.sql.execution.streaming"

# Each line that is not self-evident has its reason; numbers are from 2 cores.
SPARK_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **dict.fromkeys(  # kept for a page that nobody serves
        ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions"), "20"
    ),
    "spark.ui.retainedTasks": "100",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.port.maxRetries": "200",  # several drivers start on one machine at once
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # the default of 50 costs 4 s a read on 2 cores
    # the default manager forks chmod: 64-95 ms for an empty batch instead of 18
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # all inputs of a job share one clock, the newest record of any: a silent topic holds nothing back
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "2",  # each keeps what its batch observed; nobody asks for more
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.cleaner.periodicGC.interval": "10min",
    "spark.speculation": "false",
}


def session(settings: Settings, app: str, **conf: str) -> SparkSession:
    """The process's session; `conf` wins over the profile's, the profile's over the platform's."""
    from pyspark.sql import SparkSession

    use_bundled_java()
    use_this_python()
    builder = SparkSession.builder
    for key, value in {**session_conf(settings, app), **conf}.items():
        builder = builder.config(key, value)
    with _deaf_children():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    spark_log.configure(spark)
    _ = spark.streams  # made by its first use: a batch with transformWithState looks for its coordinator, and fails
    return spark


def session_conf(settings: Settings, app: str) -> dict[str, str]:
    """The session as settings alone, for those who have it made by somebody else."""
    named = {"spark.master": settings.spark.master, "spark.app.name": app}
    tokens = [key for key in settings.spark.conf if key.startswith("spark.kafka.clusters.")]
    if tokens:
        raise SettingsError(
            f"spark.conf: {tokens[0]} asks for Kafka delegation tokens, which the token provider at hand cannot get.",
            remedy="Use TLS or SCRAM in kafka.client and kafka.spark; infra/decisions/0005 says why.",
        )
    return {**named, **SPARK_CONF, **_sized(settings), **_local_files(settings), **settings.spark.conf}


@contextmanager
def _deaf_children() -> Generator[None]:
    """Processes started inside ignore SIGTERM for good.

    systemd or `timeout` sends it to the whole group, and a JVM that takes itself apart fails the batch that the driver
    would finish. One for us that comes meanwhile is delivered at the end; the JVM ends when its driver's pipe closes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # blocked, it stays pending all the same
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _local_files(settings: Settings) -> dict[str, str]:
    """Hadoop's own way to local files forks a chmod for each, as Spark brings no native library of it: eight a batch,
    20 ms of CPU. The class has to be there before Spark looks at its jars; a cluster's executors would miss it."""
    jar = settings.jars / "spark" / LOCAL_FILES_JAR
    if not settings.spark.master.startswith("local") or not jar.is_file():
        return {}
    return {
        "spark.broadcast.compress": "false",  # it goes nowhere: the driver is the executor
        "spark.driver.extraClassPath": str(jar),
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    }


def _sized(settings: Settings) -> dict[str, str]:
    return {
        "spark.jars": ",".join(str(jar) for jar in spark_jars(settings)),
        "spark.driver.memory": settings.spark.driver_memory,
        JAVA_OPTIONS: " ".join(_java_options(settings)),
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions),
        "spark.sql.warehouse.dir": str(settings.home / "spark-warehouse"),
    }


def _java_options(settings: Settings) -> Iterator[str]:
    """On one machine with others the serial collector: its heap is as large as what lives in it asks for, 840 MB in all
    instead of 1.3 GB a driver at rest, and catching up costs no more CPU. The parallel one grows it to its limit."""
    yield "-XX:+UseSerialGC" if settings.spark.master.startswith("local") else "-XX:+UseParallelGC"
    yield "-XX:-UsePerfData"
    if settings.classes.is_file():
        yield f'"-XX:SharedArchiveFile={settings.classes}"'
        yield QUIET
    if settings.spark.java_options:
        yield settings.spark.java_options


def spark_jars(settings: Settings) -> list[Path]:
    folder = settings.jars / "spark"
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise SetupError(f"No jars in {folder}.", remedy="Run `make setup`.")
    return jars
