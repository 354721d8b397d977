"""Raw tables beside the jobs that read the same topics, and retention that takes what they have landed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import TopicPartition
from deltalake import DeltaTable

from platform_core.broker import Broker as Kafka
from platform_core.control.position import Offsets
from platform_core.names import ReleaseId
from tests.conftest import Broker
from tests.stack.running import Platform

RAW_JOB = """
from ingest.topics import {topic}
from platform_core.declare import Raw, StreamingJob, as_landed, raw_table

{name} = StreamingJob(
    name="{name}",
    inputs={{"records": Raw({topic})}},
    transform=as_landed,
    output=raw_table("{name}", {topic}),
)
"""


def declare_raw(tree: Path, name: str, topic: str) -> None:
    """A job that lands the topic of that name in ingest/topics.py."""
    folder = tree / "streaming_jobs" / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "job.py").write_text(RAW_JOB.format(name=name, topic=topic))


def ends(platform: Platform, topics: Iterable[str]) -> Offsets:
    return Kafka(platform.settings).ends({topic: range(4) for topic in topics})


def at_end(platform: Platform, release: ReleaseId, topics: Iterable[str]) -> bool:
    """Whether the release has read all of these, which are all that it reads."""
    position = platform.position(release)
    return position is not None and position.offsets == ends(platform, topics)


def truncate(
    broker: Broker, platform: Platform, topic: str, read: Mapping[int, int] = MappingProxyType({})
) -> dict[int, int]:
    """Retention takes the older half of what was not read."""
    halves = {p: (read.get(p, 0) + end) // 2 for p, end in ends(platform, [topic])[topic].items()}
    for one in broker.admin.delete_records([TopicPartition(topic, p, half) for p, half in halves.items()]).values():
        one.result(20)
    return halves


def batches(platform: Platform, release: ReleaseId) -> list[Offsets]:
    """Where each of its batches ended."""
    table = platform.settings.storage.table(release).uri
    commits = DeltaTable(table).history() if DeltaTable.is_deltatable(table) else []
    told = [json.loads(one["userMetadata"])["offsets"] for one in reversed(commits) if "userMetadata" in one]
    return [{topic: {int(p): o for p, o in parts.items()} for topic, parts in one.items()} for one in told]
