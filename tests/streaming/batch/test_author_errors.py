"""An author's own error is told by its last words and the author's own line, with the records of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_core.control.position import Position, TableVersion
from platform_core.declare import StreamingJob
from platform_core.errors import BatchFailed
from platform_core.streaming.batch.author_errors import in_brief, placed
from platform_core.testing import QUIET, Kit
from tests.testing.jobs import bought, job

HERE = "tests/streaming/batch/test_author_errors.py"
SCRIPT = [bought("ann", 1, second=0, partition=0), QUIET, bought("bob", 3, second=1, partition=1)]
WORKERS = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/streaming_jobs/prices/job.py", line 7, in shares
    return 1 / number
           ~~^~~~~~~~
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/opt/streaming_jobs/prices/job.py", line 9, in shares
    raise ValueError("no shares\\nat all")
  File "/opt/.venv/lib/python3.11/site-packages/pandas/core/series.py", line 700, in apply
    ...
ValueError: no shares
at all
 SQLSTATE: 39000
"""


def share(amount: int) -> float:
    return 1 / (amount - 3)


def _by_row(purchases: DataFrame) -> DataFrame:
    return purchases.select("user", F.udf(share, "double")("amount").alias("share"))


def _by_batch(purchases: DataFrame) -> DataFrame:
    def shares(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            batch["share"] = [share(amount) for amount in batch["amount"]]
            yield batch[["user", "share"]]

    return purchases.mapInPandas(shares, "user STRING, share DOUBLE")


def _in_sql(purchases: DataFrame) -> DataFrame:
    return purchases.select("user", (F.lit(1) / (F.col("amount") - 3)).alias("share"))


def fail() -> None:
    raise LookupError("nothing there")


def line_of(text: str) -> int:
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if text in line)


def test_a_workers_error_is_told_by_its_last_words_and_the_authors_line() -> None:
    assert in_brief(RuntimeError(WORKERS)) == "ValueError: no shares, at /opt/streaming_jobs/prices/job.py:9"


def test_an_error_of_the_platform_has_no_authors_line() -> None:
    assert in_brief(ValueError("too much\nof it")) == "ValueError: too much"
    assert in_brief(KeyError()) == "KeyError: KeyError"


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ({"a": {0: 4}}, {"a": {0: 5}}, "batch 3 with a[0]@4"),
        ({"a": {0: 4, 1: 2}}, {"a": {0: 9, 1: 2}}, "batch 3 with a[0]@4 to 8"),
        ({}, {"a": {0: 9, 1: 0}}, "batch 3 with a[0] up to offset 8"),
        ({"a": {0: 4}}, {"a": {0: 4}}, "batch 3 with no records"),
        (
            {"a": dict.fromkeys(range(6), 0)},
            {"a": dict.fromkeys(range(6), 1)},
            "batch 3 with a[0]@0, a[1]@0, a[2]@0, a[3]@0 and of 2 more partitions",
        ),
    ],
)
def test_the_records_of_the_batch_are_told(start: Any, end: Any, says: str) -> None:
    with pytest.raises(LookupError) as raised, placed(lambda: Position("j@v1", 3, end, start)):
        fail()
    assert in_brief(raised.value) == f"LookupError: nothing there, at {HERE}:{line_of('raise LookupError')}; {says}"


def test_the_versions_of_a_table_that_the_batch_read_are_told() -> None:
    trades, still = TableVersion("trades@v1", 6), TableVersion("users@v1", 2)
    began = {"trades": TableVersion("trades@v1", 4), "users": still}
    at = Position("j@v1", 3, {}, {}, tables={"trades": trades, "users": still}, tables_start=began)
    with pytest.raises(LookupError) as raised, placed(lambda: at):
        fail()
    assert in_brief(raised.value).endswith("; batch 3 with trades up to trades@v1 version 6")


@pytest.mark.parametrize(
    ("transform", "says", "line"),
    [
        (_by_row, "ZeroDivisionError: division by zero", "return 1 / (amount - 3)"),
        (_by_batch, "ZeroDivisionError: division by zero", "return 1 / (amount - 3)"),
        (_in_sql, r"ArithmeticException: \[DIVIDE_BY_ZERO\] .*", "(F.lit(1) / (F.col"),
    ],
)
def test_a_failed_batch_names_the_authors_line_and_its_records(kit: Kit, transform: Any, says: str, line: str) -> None:
    failing: StreamingJob = job("shares", transform, "user STRING, share DOUBLE")
    at = rf"{says}, at {HERE}:{line_of(line)}"
    with pytest.raises(BatchFailed, match=rf"shares: a batch failed with {at}; batch \d with purchases\[1\]@0\."):
        kit.run(failing, SCRIPT)
    with pytest.raises(BatchFailed, match=rf"shares: the batch failed with {at}\."):
        kit.run_as_batch(failing, SCRIPT)
