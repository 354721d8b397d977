"""Declared values as nodes of the asset graph: topic -> live release -> table -> published topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from platform_core.declare import DailyTable, StreamingJob, Table, Topic
from platform_core.declare.schemas import Column
from platform_core.orchestrate.keys import ANALYTICS, SOURCES, candidate_key, live_key, table_key, topic_key

RUNBOOK = "infra/runbooks/what-dagster-shows.md"


def topic_node(topic: Topic, writer: StreamingJob | None) -> dg.AssetSpec:
    """`writer` publishes it; a topic without one is a source."""
    return dg.AssetSpec(
        topic_key(topic.name),
        deps=[table_key(writer.output.name)] if writer else [],
        group_name=writer.name if writer else SOURCES,
        kinds={"kafka"},
        owners=[topic.owner],
        description=_topic_text(topic),
        metadata={
            "dagster/column_schema": _schema(topic.columns, (), topic.personal),
            "format": topic.format.value,
            "key": topic.key or "none",
            "event_time": topic.event_time or "the record's timestamp",
            "partitions_declared": topic.partitions,
            "retention": topic.retention or "for ever",
            "compacted": topic.compacted,
            **_places("ingest/topics.py"),
        },
    )


def live_node(job: StreamingJob) -> dg.AssetSpec:
    about = f"{job.description}\n\nThe release that now writes table `{job.output.name}`. {_HOW_TO_STEER}"
    return _release_node(job, live_key(job.name), about)


def candidate_node(job: StreamingJob) -> dg.AssetSpec:
    about = (
        f"The next version of `{job.name}`, while there is one: it replays history beside the live release, into "
        "a table of its own, and is compared with it before it takes over. Until there is one nothing happens here."
    )
    return _release_node(job, candidate_key(job.name), about)


def stream_table_node(job: StreamingJob) -> dg.AssetSpec:
    return dg.AssetSpec(
        table_key(job.output.name),
        deps=[live_key(job.name)],
        group_name=job.name,
        kinds={"deltalake"},
        owners=[job.output.owner],
        description=_table_text(job.output),
        metadata={**_table_facts(job.output), "written_by": dg.MetadataValue.asset(live_key(job.name))},
    )


def daily_table_node(table: DailyTable, partitions: dg.PartitionsDefinition[str]) -> dg.AssetSpec:
    """Without its computation, which the batch room adds."""
    return dg.AssetSpec(
        table_key(table.name),
        deps=[topic_key(table.input.topic.name)],
        group_name=ANALYTICS,
        kinds={"spark", "deltalake"},
        owners=[table.output.owner],
        description=f"{_table_text(table.output)} A partition is a day of {table.zone}.",
        metadata={**_table_facts(table.output), **_places(f"analytics/{table.name}/table.py")},
        partitions_def=partitions,
    )


_HOW_TO_STEER = "Steer it with the jobs `start`, `stop`, `pause` and `restart`: choose the stream as the partition."


def _release_node(job: StreamingJob, key: dg.AssetKey, about: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=[topic_key(topic.name) for topic in job.topics],
        group_name=job.name,
        kinds={"spark"},
        owners=[job.owner],
        description=about,
        metadata={
            "updates_every": job.updates_every,
            "lateness": ", ".join(f"{name}: {part.lateness or 'none'}" for name, part in sorted(job.streams.items())),
            "reject_limit": float(job.reject_limit),
            "table": dg.MetadataValue.asset(table_key(job.output.name)),
            "cli": dg.MetadataValue.md(f"`weir status`, `weir logs {job.name} -f`, `weir history {job.name}`"),
            **_places(f"streaming_jobs/{job.name}/job.py"),
        },
    )


def _table_facts(table: Table) -> Mapping[str, Any]:
    return {
        "dagster/column_schema": _schema(table.columns, table.key, table.personal),
        "dagster/table_name": table.name,
        "key": ", ".join(table.key) or "none: rows are appended",
        "ask": dg.MetadataValue.md(f'`weir sql "select * from {table.name} limit 10"`'),
    }


def _schema(columns: tuple[Column, ...], key: tuple[str, ...], personal: tuple[str, ...]) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.sql,
                column.comment or None,
                constraints=dg.TableColumnConstraints(other=["key"] if column.name in key else []),
                tags={"personal": ""} if column.name in personal else {},
            )
            for column in columns
        ]
    )


def _topic_text(topic: Topic) -> str:
    kept = f"kept for {topic.retention}" if topic.retention else "kept for ever"
    kind = "compacted" if topic.compacted else kept
    return f"{topic.description}\n\nKafka topic `{topic.name}`, {topic.format.value}, {kind}."


def _table_text(table: Table) -> str:
    return f"{table.description or table.name}\n\nDelta table `{table.name}`."


def _places(source: str) -> Mapping[str, Any]:
    """Where to read on; paths from the root of the tree, as the web page cannot know where that stands."""
    return {"declared_in": dg.MetadataValue.path(source), "runbook": dg.MetadataValue.path(RUNBOOK)}
