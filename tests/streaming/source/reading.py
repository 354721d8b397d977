"""A release that reads one case or two, without a driver."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import duckdb

from platform_core.control.position import Places
from platform_core.declare import StreamingJob, Table
from platform_core.names import ReleaseId
from platform_core.streaming.batch.metrics import observed_by
from platform_core.streaming.batch.runner import BatchRunner
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.checkpoint.planned_batches import PlannedBatches
from platform_core.streaming.driver.lease_monitor import StopRequested
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.sink.table import output_of, table_sinks
from platform_core.streaming.source.kind import InputContext, Query
from platform_core.streaming.source.release import inputs_of
from platform_core.streaming.transform.query_plan import streamed
from platform_core.tables.delta import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
from tests.streaming.source.cases import Case, Stage, create, record


def job_of(*cases: Case) -> StreamingJob:
    """The ids of all that it reads."""
    inputs = {name: case.input for name, case in zip(("things", "others"), cases, strict=False)}
    transform = _ids_of_both if len(cases) == 2 else _ids
    return StreamingJob(name=f"copy_{uuid4().hex[:8]}", inputs=inputs, transform=transform, output=_OUTPUT)


_OUTPUT = Table(name="copy", schema="id BIGINT")


def _ids(things: DataFrame) -> DataFrame:
    return things.select("id")


def _ids_of_both(things: DataFrame, others: DataFrame) -> DataFrame:
    return things.select("id").union(others.select("id"))


class Release:
    """Without a driver: its inputs, steps, query, batches and table are the real ones."""

    def __init__(self, stage: Stage, job: StreamingJob, cases: Sequence[Case], number: int = 1) -> None:
        self._stage, self._job, self.id = stage, job, ReleaseId(job.name, number)
        ids = {topic: known for case in cases for topic, known in case.ids.items()}
        create(stage.store, self.id, job, ids, "replaying")
        self.inputs = inputs_of(InputContext(stage.settings, stage.store, job, self.id))
        self.checkpoint = Checkpoint(stage.settings.storage.checkpoint(self.id).here)
        self.steps = PlannedBatches(self.checkpoint)
        self.outcomes: list[Batch] = []

    def step(self, target: Places, watermark_ms: int = 0) -> None:
        """One batch that ends there, recorded as a driver does."""
        if self.checkpoint.planned < 0:
            self._run(self._refused)
            self.steps.plan_first(target)
        else:
            self.steps.plan(target, watermark_ms)
        self.finish()

    def go_to(self, goal: Places) -> None:
        """In as many steps as it takes to be read from elsewhere first."""
        while (at := self.at) != goal:
            self.step({**self.inputs.ends_but(goal), **self.inputs.reachable(at, goal)})

    @property
    def at(self) -> Places:
        return self.steps.at() or self.inputs.origin

    def finish(self) -> None:
        """What is planned is run, after the proofs of a start."""
        with closing(duckdb.connect()) as duck:
            before, table = table_sinks(self._stage.settings, self._job, self.id, self.checkpoint.path, duck)
            table.prove(self.checkpoint)
            query: list[ReleaseQuery] = []
            batches = BatchRunner(
                job=self._job,
                release=str(self.id),
                positions=self.checkpoint,
                sinks=[*before, table],
                metrics=lambda: observed_by(query[0].query),
                begin=lambda _: None,
                may_write=lambda: None,
                recount=lambda position, last: self.inputs.behind(self._stage.spark, position, last),
                report=self.outcomes.append,
            )
            self._run(batches.run, query)
        record(self._stage.store, self.outcomes[-1].position, self.outcomes[-1].table_version)

    def crash_after_commit(self) -> None:
        """The batch's rows are in the table, and the checkpoint does not know."""
        done = self.checkpoint.done
        for name in (str(done), f".{done}.crc"):
            (self.checkpoint.path / "commits" / name).unlink(missing_ok=True)

    @property
    def output(self) -> TableWriter:
        """As its newest commit has left it."""
        return output_of(self._stage.settings, self._job, self.id)

    @property
    def rows(self) -> list[int]:
        return sorted(self.output.table.to_pyarrow_table()["id"].to_pylist())

    def _run(self, process: Any, keep: list[ReleaseQuery] | None = None) -> None:
        asked = Query(self.inputs.origin, self.at, step=True, over_gaps=False)
        rows = streamed(self._job, self.inputs.source(self._stage.spark, asked))
        query = ReleaseQuery(self._job, rows, self.checkpoint.path, process)
        if keep is not None:
            keep.append(query)
        query.start(empty_batches=False, once=True)
        query.watch(lambda: False)

    def _refused(self, *_: Any) -> None:
        raise StopRequested
