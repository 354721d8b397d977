"""A Spark session for batch assets, started when first asked for: a run that needs none starts no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from platform_core.settings import Settings
from platform_core.streaming.driver.session import session_conf

if TYPE_CHECKING:
    from dagster_pyspark import LazyPySparkResource


def spark_on_demand(settings: Settings) -> dg.ResourceDefinition:
    """dagster-pyspark's lazy resource with the platform's settings; unlike it, it stops the session at the run's end.

    It is imported within: dagster-pyspark imports pyspark, and a code location must not.
    """

    @dg.resource(description="One Spark session a run, started when first asked for.")
    def spark(_: dg.InitResourceContext) -> Iterator[LazyPySparkResource]:
        from dagster_pyspark import LazyPySparkResource

        yield LazyPySparkResource(spark_config=session_conf(settings, "weir batch"))
        _stop()

    return spark


def _stop() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
