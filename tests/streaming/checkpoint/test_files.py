"""A start is refused unless checkpoint and table agree; the one batch that a crash cut off is no disagreement."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from platform_core.control.position import Position, TableVersion
from platform_core.errors import PositionError
from platform_core.streaming.checkpoint.files import Checkpoint, prove

TABLE = "warehouse/stock_stats/v1"


class Stage:
    """A checkpoint whose batch n ends at stocks[0]@10*(n+1), with watermark 100*n."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = Checkpoint(folder)

    def having(self, *, planned: int, done: int) -> Checkpoint:
        for batch in range(planned + 1):
            self.write(batch, entry(batch))
        commits = self.checkpoint.path / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        for batch in range(done + 1):
            (commits / str(batch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{100 * batch + 50}}}')
        return self.checkpoint

    def write(self, batch: int, text: str) -> None:
        folder = self.checkpoint.path / "offsets"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(batch)).write_text(text)


def entry(batch: int, end: int | None = None) -> str:
    facts = json.dumps({"batchWatermarkMs": 100 * batch, "batchTimestampMs": 7000 + batch, "conf": {"a": "b"}})
    return f'v1\n{facts}\n{{"stocks":{{"0":{end or 10 * (batch + 1)}}}}}'


def at(batch: int, end: int | None = None) -> Position:
    return Position("stock_stats@v1", batch, {"stocks": {0: end or 10 * (batch + 1)}})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "checkpoint")


@pytest.mark.parametrize(
    ("planned", "done", "applied"),
    [(-1, -1, -1), (0, -1, -1), (0, -1, 0), (4, 4, 4), (5, 4, 4), (5, 4, 5)],
    ids=["new", "planned first", "first written", "at rest", "cut off before the write", "cut off after the write"],
)
def test_a_crash_at_any_moment_leaves_what_a_start_takes(stage: Stage, planned: int, done: int, applied: int) -> None:
    checkpoint = stage.having(planned=planned, done=done)
    prove(checkpoint, applied, at(applied) if applied >= 0 else None, TABLE)


@pytest.mark.parametrize(
    ("planned", "done", "applied", "said"),
    [
        (-1, -1, 3, r"has no offsets, but table warehouse/stock_stats/v1 holds batch 3 up to stocks\[0\]@40"),
        (3, 4, 4, r"has commits/4 but no offsets/4; its newest offsets are of batch 3"),
        (5, 5, 3, r"is at batch 5 \(planned 5\), table warehouse/stock_stats/v1 at batch 3"),
        (5, 5, 7, r"is at batch 5 \(planned 5\), table warehouse/stock_stats/v1 at batch 7"),
    ],
    ids=["checkpoint deleted", "offsets lost", "table restored to before", "checkpoint restored to before"],
)
def test_a_disagreement_is_told_with_both_sides(stage: Stage, planned: int, done: int, applied: int, said: str) -> None:
    checkpoint = stage.having(planned=planned, done=done)
    with pytest.raises(PositionError, match=said):
        prove(checkpoint, applied, at(applied), TABLE)


def test_a_checkpoint_of_another_run_is_refused_by_its_offsets(stage: Stage) -> None:
    checkpoint = stage.having(planned=4, done=4)
    with pytest.raises(PositionError, match=r"ends batch 4 at stocks\[0\]@50, .* was committed at stocks\[0\]@51"):
        prove(checkpoint, 4, at(4, end=51), TABLE)


@pytest.mark.parametrize("torn", ["", "v1", "v1\n{", "v1\n{}\n", "v2\n{}\n{}", 'v1\n{}\n{"stocks":{"0":5'])
def test_a_torn_newest_entry_is_named_before_spark_meets_it(stage: Stage, torn: str) -> None:
    checkpoint = stage.having(planned=4, done=4)
    (checkpoint.path / "offsets" / "4").write_text(torn)
    with pytest.raises(PositionError, match=r"offsets/4: not a readable offsets file"):
        prove(checkpoint, 4, None, TABLE)


def test_hidden_and_unfinished_files_are_no_batches(stage: Stage) -> None:
    checkpoint = stage.having(planned=2, done=2)
    for name in (".3.crc", ".3.new", "3.tmp"):
        (checkpoint.path / "offsets" / name).write_text("")
    assert checkpoint.planned == 2


def test_a_position_says_where_its_batch_began_and_by_which_watermark_records_were_late(stage: Stage) -> None:
    checkpoint = stage.having(planned=3, done=3)
    position = checkpoint.position("stock_stats@v1", 3, newest_ms=999)
    assert position.start == {"stocks": {0: 30}}
    assert position.offsets == {"stocks": {0: 40}}
    assert (position.watermark_ms, position.newest_ms) == (300, 999)
    assert [checkpoint.late_before_ms(batch) for batch in (0, 1, 3)] == [0, 0, 200]
    assert checkpoint.planned_at_ms(3) == 7003


def test_lines_of_several_sources_are_one_position(stage: Stage) -> None:
    text = "\n".join([*entry(0).splitlines(), '{"stocks":{"1":7}}', "-", '{"users":{"0":3}}'])
    stage.write(0, text)
    assert stage.checkpoint.entry(0).offsets == {"stocks": {0: 10, 1: 7}, "users": {0: 3}}


def test_a_checkpoint_that_is_at_another_version_of_a_table_is_refused(stage: Stage) -> None:
    stage.having(planned=0, done=0)
    stage.write(0, "\n".join([*entry(0).splitlines(), '{"trades":{"release":"trades@v1","version":5}}']))
    here = replace(at(0), tables={"trades": TableVersion("trades@v1", 5)})
    prove(stage.checkpoint, 0, here, TABLE)
    with pytest.raises(PositionError, match=r"ends batch 0 at stocks\[0\]@10, trades at trades@v1 version 5, table"):
        prove(stage.checkpoint, 0, replace(here, tables={"trades": TableVersion("trades@v1", 4)}), TABLE)


def test_a_checkpoint_has_one_identity_and_a_new_one_another(tmp_path: Path) -> None:
    one = Checkpoint(tmp_path / "one")
    assert one.identity() == Checkpoint(tmp_path / "one").identity()
    assert one.identity() != Checkpoint(tmp_path / "two").identity()
