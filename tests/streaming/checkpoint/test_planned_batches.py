"""The offset log written by the platform: ends are ours, everything else stays as Spark wrote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from platform_core.control.position import TableVersion
from platform_core.errors import PositionError
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.checkpoint.planned_batches import PlannedBatches, reaches

CONF = {"spark.sql.shuffle.partitions": "2"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Two sources, at batch 0, which is done."""
    found = Checkpoint(tmp_path)
    facts = {"batchWatermarkMs": 100, "batchTimestampMs": 5, "conf": CONF}
    found.write_entry(0, "\n".join(["v1", json.dumps(facts), '{"events":{"0":10,"1":4}}', '{"profiles":{"0":2}}']))
    commits = tmp_path / "commits"
    commits.mkdir()
    (commits / "0").write_text('v1\n{"nextBatchWatermarkMs":120}')
    return found


def test_a_step_ends_where_it_was_told_to_in_every_source(checkpoint: Checkpoint) -> None:
    target = {"events": {0: 15, 1: 4}, "profiles": {0: 9}}
    assert PlannedBatches(checkpoint).plan(target, 120) == 1
    entry = checkpoint.entry(1)
    assert (entry.offsets, entry.watermark_ms, entry.conf) == (target, 120, CONF)


def test_a_new_partition_is_taken_in_and_a_topic_that_is_not_named_stays(checkpoint: Checkpoint) -> None:
    PlannedBatches(checkpoint).plan({"events": {0: 15, 1: 4, 2: 3}}, 0)
    assert checkpoint.entry(1).offsets == {"events": {0: 15, 1: 4, 2: 3}, "profiles": {0: 2}}


def test_a_watermark_never_goes_back(checkpoint: Checkpoint) -> None:
    PlannedBatches(checkpoint).plan({"events": {0: 15, 1: 4}}, 50)
    assert checkpoint.entry(1).watermark_ms == 100


def test_a_planned_batch_is_not_planned_anew(checkpoint: Checkpoint) -> None:
    steps = PlannedBatches(checkpoint)
    steps.plan({"events": {0: 15, 1: 4}}, 0)
    assert steps.unfinished
    with pytest.raises(PositionError, match="batch 1 is planned and not finished"):
        steps.plan({"events": {0: 20, 1: 4}}, 0)


def test_a_step_backwards_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(PositionError, match=r"is at events\[0\]@10, .*, the step would end at events\[0\]@9"):
        PlannedBatches(checkpoint).plan({"events": {0: 9, 1: 4}}, 0)


def test_a_step_ends_at_a_version_of_a_table_beside_the_offsets_of_a_topic(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    facts = {"batchWatermarkMs": 100, "batchTimestampMs": 5, "conf": CONF}
    lines = '{"events":{"0":10}}', '{"trades":{"release":"trades@v1","version":4}}'
    checkpoint.write_entry(0, "\n".join(["v1", json.dumps(facts), *lines]))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":120}')
    steps, target = PlannedBatches(checkpoint), {"events": {0: 10}, "trades": TableVersion("trades@v1", 6)}
    steps.plan(target, 120)
    assert checkpoint.entry(1).places == target
    position = checkpoint.position("j@v1", 1)
    assert (position.tables_start, position.tables) == (
        {"trades": TableVersion("trades@v1", 4)},
        {"trades": TableVersion("trades@v1", 6)},
    )
    (tmp_path / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":120}')
    with pytest.raises(PositionError, match=r"is at trades at trades@v1 version 6, the step would end at .* version 5"):
        steps.plan({"trades": TableVersion("trades@v1", 5)}, 120)


def test_only_what_was_never_let_begin_is_withdrawn(checkpoint: Checkpoint) -> None:
    steps = PlannedBatches(checkpoint)
    steps.plan({"events": {0: 15, 1: 4}}, 0)
    steps.withdraw(1)
    assert checkpoint.planned == 1
    steps.withdraw(0)
    assert checkpoint.planned == 0


def test_reaching_counts_in_the_topics_that_both_have() -> None:
    assert reaches({"a": {0: 5}, "b": {0: 1}}, {"a": {0: 5}, "c": {0: 9}})
    assert not reaches({"a": {0: 4}}, {"a": {0: 5}})
    assert not reaches({"a": {0: 5}}, {"a": {0: 5, 1: 1}})
