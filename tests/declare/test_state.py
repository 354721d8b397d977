"""Where a job's state is kept is declared, and refused where it would outgrow its place."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.topics import PAGE_VIEWS, STOCKS
from platform_core.declare import Raw, RowRule, Stream, StreamingJob, Table
from platform_core.errors import DeclarationError
from platform_core.streaming.driver.query import STATE_STORE
from platform_core.testing import Kit
from streaming_jobs.clickstream.job import clickstream
from streaming_jobs.word_count.job import word_count
from tests.contracts.inputs import script_for


def same(views: DataFrame) -> DataFrame:
    return views.select("page")


def test_memory_is_for_what_lateness_bounds() -> None:
    pages = Table(name="pages", schema="page STRING")
    with pytest.raises(DeclarationError, match=r"job 'pages'.state: an input without lateness is kept for ever"):
        StreamingJob(name="pages", inputs={"views": Stream(PAGE_VIEWS)}, transform=same, output=pages, state="memory")


def test_a_query_begins_with_the_store_that_its_job_declares(kit: Kit, spark: SparkSession) -> None:
    for job, store in ((clickstream, "HDFSBackedStateStoreProvider"), (word_count, "RocksDBStateStoreProvider")):
        kit.run(job, script_for(job))
        assert str(spark.conf.get(STATE_STORE)).endswith(store)


def test_what_is_taken_as_it_is_has_no_rules() -> None:
    assert [column.name for column in Raw(STOCKS).topic.columns] == ["value"]
    with pytest.raises(DeclarationError, match=r"Raw\('stocks'\): lateness, rules and nulls need what is in a record"):
        Raw(STOCKS, rules=(RowRule("price is positive", "price > 0"),))
