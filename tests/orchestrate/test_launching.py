"""Runs that are forked from a process which has loaded the location, on Dagster's real storage."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals

import dagster as dg
import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import LaunchRunContext, WorkerStatus
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from platform_core.control.owners import Owner
from platform_core.orchestrate.launching import ForkingLauncher, worker_of
from platform_core.services import dagster, process
from platform_core.services.service import start
from tests.conftest import Database

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

MODULE = "spoken.definitions"
LOCATION = """
import os, time
import dagster as dg

WORDS = "as it was"

@dg.op
def say(context):
    context.add_output_metadata({"words": WORDS, "parent": os.getppid(), "threads": len(os.listdir("/proc/self/task"))})

@dg.op
def wait():
    time.sleep(600)

@dg.job
def speak():
    say()

@dg.job
def linger():
    wait()

@dg.definitions
def weir():
    return dg.Definitions(jobs=[speak, linger], executor=dg.in_process_executor)
"""


@dataclass
class Site:
    """A tree with a location, and its forker."""

    tree: Path
    instance: dg.DagsterInstance
    forker: Owner

    @property
    def launcher(self) -> ForkingLauncher:
        launcher = self.instance.run_launcher
        assert isinstance(launcher, ForkingLauncher)
        return launcher

    def create(self, job: str, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTING) -> dg.DagsterRun:
        found = ReconstructableRepository(ModuleCodePointer(MODULE, "weir")).get_reconstructable_job(job)
        location = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("spoken"), "__repository__")
        return self.instance.create_run_for_job(
            found.get_definition(),
            status=status,
            job_code_origin=found.get_python_origin(),
            remote_job_origin=location.get_job_origin(job),
        )

    def launch(self, job: str) -> str:
        run = self.create(job)
        self.launcher.launch_run(LaunchRunContext(run, None))
        return run.run_id

    def run(self, run_id: str) -> dg.DagsterRun:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def awaits(self, run_id: str, status: dg.DagsterRunStatus) -> None:
        assert process.until(lambda: self.run(run_id).status is status, 600), self.run(run_id)

    def spoken(self) -> dict[str, object]:
        """What a run of `speak` said of itself."""
        run_id = self.launch("speak")
        self.awaits(run_id, dg.DagsterRunStatus.SUCCESS)
        (output,) = self.instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_OUTPUT)
        assert output.dagster_event is not None
        metadata = output.dagster_event.step_output_data.metadata
        return {name: value.value for name, value in metadata.items()}


@pytest.fixture(scope="module")
def site(postgres: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    tree = tmp_path_factory.mktemp("tree")
    (tree / "spoken").mkdir()
    (tree / "spoken" / "__init__.py").touch()
    (tree / "spoken" / "definitions.py").write_text(LOCATION)
    planned = dagster.runs(postgres.settings)
    pipe, environment = planned.command[-1], dict(planned.environment())
    environment["PYTHONPATH"] = os.pathsep.join((str(tree), environment["PYTHONPATH"]))
    command = (sys.executable, "-m", "platform_core.orchestrate.forker", str(tree), MODULE, pipe)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(dagster.PASSWORD, environment[dagster.PASSWORD])
        patch.setattr(sys, "path", [*sys.path, str(tree)])  # last: Dagster leaves out the first, a script's folder
        child = start(replace(planned, command=command, environment=lambda: environment))
        with dg.DagsterInstance.from_config(environment["DAGSTER_HOME"]) as instance:
            yield Site(tree, instance, Owner.of(child.pid))
        process.stop(Owner.of(child.pid), Signals.SIGTERM, 10, child.poll)


def test_a_run_is_done_by_a_fork_of_a_process_with_one_thread(site: Site) -> None:
    said = site.spoken()
    assert said == {"words": "as it was", "parent": site.forker.pid, "threads": said["threads"]}
    assert len(os.listdir(f"/proc/{site.forker.pid}/task")) == 1


def test_a_run_sees_the_tree_as_it_is_when_it_begins(site: Site) -> None:
    source = site.tree / "spoken" / "definitions.py"
    source.write_text(LOCATION.replace("as it was", "as it is"))
    assert site.spoken()["words"] == "as it is"
    assert site.spoken()["parent"] == site.forker.pid


def test_a_tree_that_has_changed_is_loaded_before_a_run_asks_for_it(site: Site) -> None:
    marker = site.tree / "loaded"
    source = site.tree / "spoken" / "definitions.py"
    source.write_text(f"open({str(marker)!r}, 'w').close()\n{LOCATION}")
    assert process.until(marker.exists, 600)


def test_a_tree_that_does_not_load_fails_its_runs_and_not_the_forker(site: Site) -> None:
    source, run = site.tree / "spoken" / "definitions.py", site.create("speak")
    source.write_text("import nothing_of_this_name")
    site.launcher.launch_run(LaunchRunContext(run, None))
    site.awaits(run.run_id, dg.DagsterRunStatus.FAILURE)
    assert "nothing_of_this_name" in str(site.instance.all_logs(run.run_id))
    source.write_text(LOCATION)
    assert site.spoken()["words"] == "as it was"


def test_a_run_at_work_is_ended_from_another_process(site: Site) -> None:
    run_id = site.launch("linger")
    site.awaits(run_id, dg.DagsterRunStatus.STARTED)
    assert site.launcher.terminate(run_id)
    site.awaits(run_id, dg.DagsterRunStatus.CANCELED)


def test_run_monitoring_learns_that_a_worker_was_killed(site: Site) -> None:
    run_id = site.launch("linger")
    site.awaits(run_id, dg.DagsterRunStatus.STARTED)
    assert site.launcher.check_run_worker_health(site.run(run_id)).status is WorkerStatus.RUNNING
    worker = worker_of(site.run(run_id))
    assert worker is not None
    worker.signal(Signals.SIGKILL)
    assert process.until(lambda: worker.gone, 30)
    assert site.launcher.check_run_worker_health(site.run(run_id)).status is WorkerStatus.FAILED


def test_the_queue_keeps_a_run_while_nobody_reads(site: Site, tmp_path: Path) -> None:
    nobody = ForkingLauncher(str(tmp_path / "no.pipe"))
    with pytest.raises(DagsterUserCodeUnreachableError, match=r"no\.pipe"):
        nobody.launch_run(LaunchRunContext(site.create("speak"), None))
    pipe = site.launcher._pipe  # pyright: ignore[reportPrivateUsage]
    run = site.create("speak", dg.DagsterRunStatus.NOT_STARTED)
    site.instance.report_dagster_event(dg.DagsterEvent.job_enqueue(run), run_id=run.run_id)
    hidden = pipe.rename(pipe.with_suffix(".hidden"))
    _dequeue(site.instance)
    assert site.run(run.run_id).status is dg.DagsterRunStatus.QUEUED
    hidden.rename(pipe)
    _until_dequeued(site, run.run_id)
    site.awaits(run.run_id, dg.DagsterRunStatus.SUCCESS)


def _until_dequeued(site: Site, run_id: str) -> None:
    def dequeued() -> bool:
        _dequeue(site.instance)
        return site.run(run_id).status is not dg.DagsterRunStatus.QUEUED

    assert process.until(dequeued, 60)


def _dequeue(instance: dg.DagsterInstance) -> None:
    """What the daemon does every two seconds."""
    with (
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as workspace,
        QueuedRunCoordinatorDaemon(interval_seconds=1) as daemon,
    ):
        list(daemon.run_iteration(workspace))
