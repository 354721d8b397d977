"""Moving a release to a chosen position: its next batch is planned here, runs as one batch, and ends there exactly.

Spark writes a batch's offsets before it runs it, and finishes what is planned before it plans anew. So an entry that is
written before the query starts becomes its next batch (measured: ends at the planned offsets, stateful queries included).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from platform_core.control.position import Offsets, as_text
from platform_core.declare import StreamingJob
from platform_core.errors import PositionError
from platform_core.stream.checkpoint import Checkpoint
from platform_core.stream.source import event_topics, lookup_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sources_of(job: StreamingJob) -> list[list[str]]:
    """The topics of each of the query's sources, in the order in which the offset log has them."""
    found = [[topic.name for topic in event_topics(job)], [topic.name for topic in lookup_topics(job)]]
    return [names for names in found if names]


class Planner:
    def __init__(self, checkpoint: Checkpoint, sources: Sequence[Collection[str]], spark: SparkSession) -> None:
        self._checkpoint, self._sources, self._spark = checkpoint, sources, spark

    @property
    def unfinished(self) -> bool:
        """Whether a planned batch has still to run. It is never planned anew: its table commit may exist already."""
        return self._checkpoint.planned > self._checkpoint.done

    def at(self) -> Offsets:
        """Where the last finished batch ended."""
        done = self._checkpoint.done
        return self._checkpoint.entry(done).offsets if done >= 0 else {}

    def plan(self, target: Offsets) -> int:
        """Writes the entry of the next batch, which ends at `target`; returns its number."""
        if self.unfinished:
            raise PositionError(
                f"Checkpoint {self._checkpoint.path}: batch {self._checkpoint.planned} is planned and not finished.",
                remedy="Run it first.",
            )
        self._refuse_backwards(target)
        batch = self._checkpoint.done + 1
        lines = [json.dumps(_of(names, target), separators=(",", ":")) for names in self._sources]
        self._checkpoint.identity()
        self._checkpoint.write_entry(batch, "\n".join(["v1", self._metadata(batch), *lines]))
        return batch

    def _refuse_backwards(self, target: Offsets) -> None:
        for topic, parts in self.at().items():
            for partition, offset in parts.items():
                if target.get(topic, {}).get(partition, -1) < offset:
                    raise PositionError(
                        f"Checkpoint {self._checkpoint.path} is at {topic}[{partition}]@{offset}, "
                        f"the step would end at {target.get(topic, {}).get(partition)}.",
                        remedy="A release only moves forward; start a new one to read again.",
                    )

    def _metadata(self, batch: int) -> str:
        """Watermark, time and settings, as Spark itself would fix them for the batch."""
        now, watermark = int(time.time() * 1000), self._checkpoint.next_watermark_ms()
        if batch > 0:
            former: dict[str, Any] = self._checkpoint.metadata(batch - 1)
            return json.dumps({**former, "batchWatermarkMs": watermark, "batchTimestampMs": now}, separators=(",", ":"))
        spark: Any = self._spark
        package = spark._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        conf = spark._jsparkSession.conf()  # which settings a checkpoint fixes is Spark's to say
        return str(package.OffsetSeqMetadata.apply(watermark, now, conf).json())


def _of(names: Collection[str], target: Offsets) -> dict[str, dict[str, int]]:
    return as_text({name: target[name] for name in names})
