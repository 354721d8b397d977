"""The classes that every Spark loads, parsed and verified once, in a file that its JVMs map (class data sharing).

Measured on 2 cores: a session stands after 3.2 s instead of 4.6; a short batch takes a fifth less of the processors.
The JVM itself checks that Java and jars are those it was made from, and goes on without it when they are not. Java 21
finds Spark's class path another one than it was (21.0.8: "APP classpath mismatch", of equal paths): none for it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.errors import SetupError, WeirError
from platform_core.services import java
from platform_core.settings import Settings, load
from platform_core.streaming.driver.session import JAVA_OPTIONS, QUIET, session, session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TAKEN_BY = 17
_DONE_WITHOUT = "Nothing needs it; starts take a second longer."
_ENDS = 300.0  # seconds: the JVM writes the file when it ends


def fresh(settings: Settings) -> bool:
    """Whether there is one, and it is newer than what it was made from."""
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise SetupError("pyspark is not installed.", remedy="Run `make setup`.")
    made_from = [Path(spark.origin).parent / "jars", settings.jars / "spark", java.find().command]
    made = settings.classes
    return made.is_file() and all(made.stat().st_mtime > path.stat().st_mtime for path in made_from)


def make(settings: Settings) -> float:
    """Runs a small stream as a driver does, in a JVM that writes down what it loaded. Returns the file's megabytes."""
    settings.classes.unlink(missing_ok=True)
    new = settings.classes.with_suffix(".new")
    options = f'{session_conf(settings, "")[JAVA_OPTIONS]} {QUIET} "-XX:ArchiveClassesAtExit={new}"'
    spark = session(settings, "classes", **{JAVA_OPTIONS: options})
    with tempfile.TemporaryDirectory(prefix="weir-classes-") as folder:
        _stream(spark, Path(folder))
    _end(spark)
    if not new.is_file():
        raise SetupError("Java wrote no file of classes.", remedy=_DONE_WITHOUT)
    new.replace(settings.classes)
    return settings.classes.stat().st_size / 1e6


def _stream(spark: SparkSession, folder: Path) -> None:
    """JSON in, windows with state, rows to Arrow."""
    from pyspark.sql import functions as F

    (folder / "in").mkdir()
    lines = (json.dumps({"name": f"n{at % 7}", "at": f"2026-01-01T00:00:{at % 60:02}Z"}) for at in range(1000))
    (folder / "in" / "lines.txt").write_text("\n".join(lines))
    raw = spark.readStream.text(str(folder / "in"))
    read = raw.select(F.from_json("value", "name STRING, at TIMESTAMP").alias("v")).select("v.*")
    timed = read.observe("seen", F.count(F.lit(1)).alias("records")).withWatermark("at", "10 seconds")
    counts = timed.groupBy("name", F.window("at", "5 seconds", "1 second")).agg(F.count("*"), F.max("at"))

    def taken(rows: DataFrame, _: int) -> None:
        rows.toArrow()

    writer = counts.writeStream.foreachBatch(taken).outputMode("update")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def _end(spark: SparkSession) -> None:
    """And wait for its JVM, which ends when its standard input does."""
    gateway: Any = spark.sparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_ENDS)


def main() -> int:
    """`python -m platform_core.services.classes LOG`: a step of set-up. What it makes saves time; nothing needs it."""
    began, settings = time.monotonic(), load("local", {})  # whichever profile is chosen: no cluster is asked for it
    with Path(sys.argv[1]).open("a") as log:
        os.dup2(log.fileno(), 2)  # where Spark and its Java say what nobody asked for
    try:
        if java.find().major != TAKEN_BY:
            print(f"    left out: Java {TAKEN_BY} takes one. {_DONE_WITHOUT}")
            return 0
        if fresh(settings):
            print("    there already")
            return 0
        size = make(settings)
    except WeirError as error:
        print(f"    left out: {error.what} {error.remedy}")
        return 0
    print(f"    {size:.0f} MB, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
