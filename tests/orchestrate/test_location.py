"""The code location: loads without the world, and is the graph that was reviewed."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from platform_core.orchestrate.keys import candidate_key, live_key, table_key, topic_key
from tests.orchestrate.asset_graph import KEPT, built, drawn

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return built()


def test_the_location_is_valid(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)


@pytest.mark.ordinary
def test_the_workspace_file_loads_as_dagster_reads_it(tmp_path: Path) -> None:
    """As `dg dev -w workspace.yaml` does: in a code server of its own."""
    words = ["-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    env = {**os.environ, "DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "1"}
    ran = subprocess.run([sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_asset_graph_is_the_one_that_was_reviewed(definitions: dg.Definitions) -> None:
    """After a change that is meant: `python -m tests.orchestrate.asset_graph`."""
    assert drawn(definitions) == json.loads(KEPT.read_text())


def test_lineage_runs_from_topic_over_live_release_and_table_to_published_topic(definitions: dg.Definitions) -> None:
    graph = definitions.get_repository_def().asset_graph
    line = [topic_key("stocks"), live_key("stock_stats"), table_key("stock_stats"), topic_key("stockstats-output")]
    for before, after in itertools.pairwise(line):
        assert graph.get(after).parent_keys == {before}


def test_a_candidate_stands_beside_the_live_release_and_writes_nothing(definitions: dg.Definitions) -> None:
    graph = definitions.get_repository_def().asset_graph
    candidate = graph.get(candidate_key("stock_stats"))
    assert candidate.parent_keys == graph.get(live_key("stock_stats")).parent_keys
    assert candidate.child_keys == set()


def test_personal_columns_are_tagged(definitions: dg.Definitions) -> None:
    schema = (
        definitions.get_repository_def().asset_graph.get(table_key("user_activity")).metadata["dagster/column_schema"]
    )
    tagged = {column.name for column in schema.columns if "personal" in column.tags}
    assert "zipcode" in tagged
    assert "view_id" not in tagged


def test_importing_the_location_reads_no_settings_and_imports_no_spark() -> None:
    in_a_new_process("import infra.definitions, sys; assert 'pyspark' not in sys.modules", WEIR_PROFILE="none")


def test_loading_the_location_starts_no_jvm_and_opens_no_socket(tmp_path: Path) -> None:
    program = """
import socket
def refuse(*_): raise AssertionError("a socket was opened")
socket.socket.connect = refuse
from infra.definitions import weir
import dagster as dg
dg.Definitions.validate_loadable(weir())
from pyspark import SparkContext
assert SparkContext._gateway is None
"""
    in_a_new_process(program, WEIR_HOME=str(tmp_path))


def in_a_new_process(program: str, **environment: str) -> None:
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
