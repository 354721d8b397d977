"""The asset graph as text that a review can read. `python -m tests.orchestrate.asset_graph` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg

from platform_core.orchestrate.location import location
from platform_core.orchestrate.platform import Platform
from platform_core.settings import load

KEPT = Path(__file__).with_name("asset_graph.json")


def built() -> dg.Definitions:
    """The location as declared; its settings point nowhere, as loading asks nobody."""
    return location(Platform.declared(load(environment={"WEIR_HOME": "nowhere"})))


def drawn(definitions: dg.Definitions) -> dict[str, Any]:
    repository = definitions.get_repository_def()
    graph = repository.asset_graph
    return {
        "assets": {key.to_user_string(): _asset(graph, key) for key in sorted(graph.get_all_asset_keys())},
        "jobs": {job.name: job.description for job in repository.get_all_jobs() if not job.name.startswith("__")},
        "sensors": {sensor.name: _automation(sensor) for sensor in repository.sensor_defs},
        "schedules": {schedule.name: _automation(schedule) for schedule in repository.schedule_defs},
    }


def _asset(graph: Any, key: dg.AssetKey) -> dict[str, Any]:
    node = graph.get(key)
    schema = node.metadata.get("dagster/column_schema")
    partitions = node.partitions_def
    return {
        "after": sorted(parent.to_user_string() for parent in node.parent_keys),
        "group": node.group_name,
        "kinds": sorted(node.kinds),
        "owners": list(node.owners),
        "description": node.description,
        "columns": {column.name: column.type for column in schema.columns} if schema else {},
        "computed": node.is_materializable,
        "partitions": None if partitions is None else type(partitions).__name__,
        "checks": sorted(check.name for check in node.check_keys),
    }


def _automation(definition: Any) -> dict[str, Any]:
    return {"description": definition.description, "default": definition.default_status.value}


def main() -> None:
    KEPT.write_text(json.dumps(drawn(built()), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
