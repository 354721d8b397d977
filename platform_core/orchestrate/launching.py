"""How Dagster launches runs: one process has loaded the location and forks a worker for each run.

A worker that is a new Python spends four seconds of a processor before it begins and takes 250 MB; beside streams that
keep the processors busy these are minutes, and the queue drops the run. A fork begins at once and shares the modules.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from platform_core.control.owners import Owner

WORKER_TAG = ".dagster/weir_worker"  # host, pid and beginning, said by the worker; the dot keeps it off the pages


class ForkingLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """`run_launcher` of dagster.yaml; `pipe` is where the forker reads."""

    def __init__(self, pipe: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._pipe, self._inst_data = Path(pipe), inst_data
        super().__init__()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        return {"pipe": str}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> ForkingLauncher:
        return cls(config_value["pipe"], inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Does not wait for the worker. One that never begins is found by run monitoring, and the run retried."""
        try:
            tell(self._pipe, context.dagster_run.run_id)
        except OSError as error:  # the one kind of error after which the queue keeps the run
            raise DagsterUserCodeUnreachableError(
                f"Nobody reads {self._pipe}: {error}. `weir status` says whether dagster-runs is ready."
            ) from error

    def terminate(self, run_id: str) -> bool:
        """Asks the worker to end, from whatever process; Dagster reports the run as canceled when it has."""
        run = self._instance.get_run_by_id(run_id)
        worker = None if run is None or run.is_finished else worker_of(run)
        if run is None or worker is None:
            return False
        self._instance.report_run_canceling(run)
        return worker.signal(Signals.SIGINT)

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Asked by run monitoring of runs that have begun."""
        worker = worker_of(run)
        if worker is None:
            return CheckRunHealthResult(WorkerStatus.UNKNOWN, "no worker has said that it is at work")
        if worker.gone:
            return CheckRunHealthResult(WorkerStatus.FAILED, f"{worker} ended before the run did")
        return CheckRunHealthResult(WorkerStatus.RUNNING, str(worker))


def tell(pipe: Path, run_id: str) -> None:
    """Never waits; OSError when nobody reads."""
    link = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(link, f"{run_id}\n".encode())  # so short a line is written whole or not at all
    finally:
        os.close(link)


def worker_of(run: dg.DagsterRun) -> Owner | None:
    """The process that works on the run, as it said itself."""
    if WORKER_TAG not in run.tags:
        return None
    host, pid, began = run.tags[WORKER_TAG].rsplit(" ", 2)
    return Owner(host, int(pid), float(began))


def worker_tag(owner: Owner) -> dict[str, str]:
    return {WORKER_TAG: f"{owner.host} {owner.pid} {owner.started_at}"}
