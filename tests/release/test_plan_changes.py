"""Every difference between a release and a tree is no change, a revision or a replay, and is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from platform_core.archived.protocol import PROTOCOL
from platform_core.archived.rows import ROWS_VERSION
from platform_core.declare.discover import load_job
from platform_core.release.contents import LOCK, copy
from platform_core.release.declared import declared
from platform_core.release.plan import fields
from platform_core.release.plan.changes import ChangeKind, DeclaredChange, PlannedVersion, changes, kind_of
from platform_core.release.plan.reach import Code, Reach, transform_roots
from platform_core.settings import ROOT
from tests.release.conftest import Tree

pytestmark = pytest.mark.ordinary  # each copies the platform twice
Edited = Callable[..., list[DeclaredChange]]

_JOB = '''
"""Sums."""

from pyspark.sql import functions as F

from platform_core.declare import StreamingJob
from streaming_jobs.{name} import words
from streaming_jobs.{name}.rates import Rate as Price, discount

WINDOW, HOP = "5 seconds", "1 second"
UNUSED = 1


def totals(lines):
    """Adds up."""
    # by line
    asks = lines.where(F.col("line") != words.IGNORED)
    return asks.groupBy("line", F.window("event_time", WINDOW, HOP)).agg(
        F.sum("amount").alias("total"), F.max("amount").alias("most"), discount().alias("less")
    )


def report():
    return UNUSED


{name} = StreamingJob(name="{name}", inputs=dict(lines=None), transform=totals, output=None)
'''

_RATES = """
from platform_core.patterns import sliding_windows


class Rate:
    of = 2


def discount():
    return Rate.of or sliding_windows
"""


@pytest.fixture
def edited(tree: Tree, tmp_path: Path) -> Edited:
    """What differs once text in a file was replaced; the file is the job's module unless named."""
    tree.module.write_text(_JOB.format(name=tree.job))
    tree.module.with_name("words.py").write_text('IGNORED = "the"\nOTHER = "a"\n')
    tree.module.with_name("rates.py").write_text(_RATES)
    copy(tree.root, tmp_path / "old")
    values: dict[str, Any] = {"name": tree.job, "inputs": {}, "publish": None}

    def edit(old: str, new: str, file: str | None = None) -> list[DeclaredChange]:
        path = tree.root / (file or tree.module.relative_to(tree.root)).__str__().format(job=tree.job)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        was, now = (
            PlannedVersion(Code(root), values, PROTOCOL, ROWS_VERSION) for root in (tmp_path / "old", tree.root)
        )
        return changes(was, now)

    return edit


def _told(found: list[DeclaredChange]) -> list[str]:
    return [f"{one.kind.value}: {one}" for one in found]


def test_the_same_tree_has_no_change(edited: Edited) -> None:
    assert edited("totals", "totals") == []
    assert kind_of([]) is ChangeKind.NONE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Sums."""', '"""Sums of lines."""'),
        ("# by line", "# by anything"),
        ('    """Adds up."""\n', ""),
        ("    return asks.groupBy(", "    return (asks).groupBy("),
    ],
)
def test_comments_docstrings_and_layout_are_a_revision(edited: Edited, old: str, new: str) -> None:
    assert _told(edited(old, new)) == ["revision: comments, docstrings, imports or layout"]


def test_code_that_the_transform_does_not_reach_is_a_revision(edited: Edited) -> None:
    assert _told(edited("return UNUSED", "return -UNUSED")) == ["revision: outside the transform: report"]


@pytest.mark.parametrize(
    ("old", "new", "file", "said"),
    [
        ('"5 seconds"', '"6 seconds"', None, "constant WINDOW changed ('5 seconds' became '6 seconds')"),
        ("F.max(", "F.min(", None, "function totals changed (operator agg changed, column most changed)"),
        ('F.col("line") != words', 'F.col("key") != words', None, "function totals changed (operator where changed)"),
        ("asks.groupBy", "asks.distinct().groupBy", None, "function totals changed (operator distinct added)"),
        ('"the"', '"an"', "streaming_jobs/{job}/words.py", "constant IGNORED changed ('the' became 'an')"),
        ("of = 2", "of = 3", "streaming_jobs/{job}/rates.py", "class Rate changed"),
        ("return Rate.of", "return Rate.of + 1", "streaming_jobs/{job}/rates.py", "function discount changed"),
        ("2**power", "3**power", "platform_core/patterns/sliding_windows.py", "function _below changed"),
    ],
)
def test_what_the_transform_reaches_must_be_replayed(
    edited: Edited, old: str, new: str, file: str | None, said: str
) -> None:
    assert _told(edited(old, new, file)) == [f"must replay: the transform's {said}"]


def test_a_name_that_the_transform_does_not_use_is_a_revision(edited: Edited) -> None:
    assert _told(edited('OTHER = "a"', 'OTHER = "b"', "streaming_jobs/{job}/words.py")) == [
        "revision: outside the transform: OTHER"
    ]


def test_where_it_changed_is_told_by_line(edited: Edited) -> None:
    found = edited("F.max(", "F.min(")
    assert found[0].where.endswith("/job.py:14")


def test_a_transform_that_looks_names_up_reaches_all_of_its_module(edited: Edited) -> None:
    edited("    # by line", "    globals()")
    found = edited("return UNUSED", "return -UNUSED")
    assert "must replay: the transform's function report is new" in _told(found)


def test_the_platform_is_a_revision(edited: Edited) -> None:
    monitor = "platform_core/streaming/driver/lease_monitor.py"
    assert _told(edited("_MARGIN = 2.0", "_MARGIN = 3.0", monitor)) == ["revision: outside the transform: _MARGIN"]


def test_another_version_of_the_platforms_rows_must_be_replayed(tree: Tree) -> None:
    values: dict[str, Any] = {"name": tree.job, "inputs": {}, "publish": None}
    was, now = (
        PlannedVersion(Code(tree.root), values, PROTOCOL, version) for version in (ROWS_VERSION + 1, ROWS_VERSION)
    )
    assert _told(changes(was, now)) == [
        f"must replay: the platform makes rows of version {ROWS_VERSION + 1} in the release, "
        f"of version {ROWS_VERSION} here"
    ]


@pytest.mark.parametrize("file", ["platform_core/cli/check.py", "platform_core/orchestrate/health.py"])
def test_what_the_release_does_not_run_is_no_change(edited: Edited, file: str) -> None:
    assert edited("from __future__", "# told\nfrom __future__", file) == []


def test_another_jobs_code_is_no_change(edited: Edited, tree: Tree) -> None:
    other = tree.root / "streaming_jobs" / "other" / "job.py"
    other.parent.mkdir()
    other.write_text("X = 1\n")
    assert edited("totals", "totals") == []


def test_a_locked_package_is_a_revision_and_named(edited: Edited) -> None:
    found = edited("nothing==1.0", "nothing==1.1", LOCK)
    assert _told(found) == ["revision: the locked environment (nothing 1.0 became 1.1)"]


def test_every_jobs_transform_is_found() -> None:
    code = Code(ROOT)
    roots = [transform_roots(code, job) for job in ("clickstream", "stock_stats", "word_count")]
    assert [[name for _, name in places] for places in roots] == [
        ["views_with_searches"],
        ["ask_statistics"],
        ["count_words"],
    ]
    reached = {name for _, name in Reach(code, roots[0]).definitions}
    assert reached == {"views_with_searches", "_seen", "_leading", "SAME_USER", "LED_TO_VIEW"}


def _changed(path: str, value: Any) -> list[fields.Field]:
    old = declared(load_job("stock_stats", ROOT))
    new = json.loads(json.dumps(old))
    *inner, last = path.split(".")
    here = new
    for name in inner:
        here = here[name]
    here[last] = value(here[last]) if callable(value) else value
    return fields.differences(old, new)


@pytest.mark.parametrize(
    ("path", "value", "said", "decides"),
    [
        ("inputs.trades.lateness", "9 seconds", "inputs.trades.lateness: 10 seconds became 9 seconds", True),
        ("inputs.trades.late", "rejected", "inputs.trades.late: dropped became rejected", False),
        ("inputs.trades.topic.name", "s2", "inputs.trades.topic.name: stocks became s2", True),
        ("inputs.trades.topic.retention", "1 day", "inputs.trades.topic.retention: nothing became 1 day", False),
        ("output.key", ["ticker"], "output.key: ['ticker', 'window_start'] became ['ticker']", True),
        ("publish", None, "publish: Publish became nothing", True),
        ("updates_every", "2 seconds", "updates_every: 1 second became 2 seconds", False),
        ("reject_limit", 0.1, "reject_limit: 0.5 became 0.1", False),
        ("settings", {"spark.x": "1"}, "settings.spark.x: nothing became 1", False),
        ("owner", "team:other", "owner: team:data became team:other", False),
        ("emits", "final", "emits: nothing became final", True),
    ],
)
def test_a_declared_value_is_named_and_means_what_it_does(path: str, value: Any, said: str, decides: bool) -> None:
    found = _changed(path, value)
    assert [(str(one), one.decides) for one in found] == [(said, decides)]


def test_schemas_differ_by_columns_and_not_by_text() -> None:
    def again(schema: str) -> str:
        return schema.replace("\n", " ").replace("BIGINT", "bigint")

    def other(schema: str) -> str:
        return schema.replace("min_price DECIMAL(18,6) COMMENT 'the lowest ask'", "min_price DOUBLE COMMENT 'low'")

    assert _changed("output.schema", again) == []
    assert [(str(one), one.decides) for one in _changed("output.schema", other)] == [
        ("output.schema.min_price.type: decimal(18,6) became double", True),
        ("output.schema.min_price.comment: the lowest ask became low", False),
    ]


def test_a_rule_is_known_by_its_name() -> None:
    found = _changed("inputs.trades.rules", lambda rules: rules[:-1])  # pyright: ignore[reportUnknownLambdaType]
    assert [str(one) for one in found] == ["inputs.trades.rules.price is positive: price > 0 became nothing"]


def test_a_field_that_the_older_platform_did_not_know_had_its_default() -> None:
    old = declared(load_job("stock_stats", ROOT))
    older = {name: part for name, part in old.items() if name not in ("settings", "reject_limit")}
    assert fields.differences(older, old) == []
