"""What decides a job's rows has one fingerprint; what does not, does not."""

from __future__ import annotations

import json

import pytest

from ingest.topics import STOCKS, STOCKSTATS_OUTPUT
from platform_core.declare.discover import load_job
from platform_core.release.declared import declared, fingerprint, normalized, topics_in
from platform_core.settings import ROOT
from tests.release.conftest import Tree


def _print(tree: Tree, **changes: object) -> str:
    return fingerprint({"name": tree.job, "inputs": {}, **changes}, tree.root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Lines, as they come."""', '"""Other words."""'),
        ('    """Nothing happens to them."""\n', ""),
        ("def same(lines):", "# a comment\n\n\ndef same(\n    lines,\n):"),
    ],
)
def test_comments_layout_and_docstrings_do_not_count(tree: Tree, old: str, new: str) -> None:
    before = _print(tree)
    tree.edit(old, new)
    assert _print(tree) == before


def test_code_counts(tree: Tree) -> None:
    before = _print(tree)
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    assert _print(tree) != before


def test_a_module_beside_the_job_counts(tree: Tree) -> None:
    before = _print(tree)
    tree.module.with_name("schemas.py").write_text("X = 1\n")
    assert _print(tree) != before


def test_declared_values_count_and_descriptions_do_not(tree: Tree) -> None:
    before = _print(tree, output={"schema": "a INT", "description": "one", "owner": "x"})
    assert _print(tree, output={"schema": "a INT", "description": "two", "owner": "y"}) == before
    assert _print(tree, output={"schema": "a BIGINT", "description": "one", "owner": "x"}) != before


def test_a_docstring_alone_is_a_body() -> None:
    assert normalized('def f():\n    "says"\n') == normalized("def f():\n    'else'\n")


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "streaming_jobs").glob("*/job.py")))
def test_every_job_tells_its_values_as_plain_data(name: str) -> None:
    job = load_job(name, ROOT)
    values = declared(job)
    assert json.loads(json.dumps(values)) == values
    published = [publish.topic for publish in job.publishes]
    assert topics_in(values) == [*job.topics, *published]


def test_topics_come_back_whole() -> None:
    values = declared(load_job("stock_stats", ROOT))
    assert topics_in(values) == [STOCKS, STOCKSTATS_OUTPUT]
