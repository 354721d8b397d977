"""The jobs that steer a stream, run as Dagster runs them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import dagster as dg
import pytest

from platform_core.control import audit, leases, releases, services, wanted
from platform_core.declare.discover import load_jobs
from platform_core.names import ReleaseId
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.steering import steering_jobs

pytestmark = pytest.mark.stack

JOB = "word_count"


@pytest.fixture
def steered(platform: Platform) -> Generator[Platform]:
    """The platform with the tree's own jobs; forgets afterwards what was started."""
    yield replace(platform, jobs=load_jobs(platform.settings.root))
    with platform.store.transaction() as cursor:
        for table in ("releases", "wanted", "aliases"):
            cursor.execute(f"delete from weir.{table} where job = %s", (JOB,))  # type: ignore[arg-type]


def launch(platform: Platform, action: str, reason: str = "") -> dg.ExecuteInProcessResult:
    """As from the launchpad: a partition chosen, a reason given, the user in the tags."""
    (job,) = [job for job in steering_jobs(platform) if job.name == action]
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(
            {"ops": {f"{action}_stream": {"config": {"reason": reason}}}},
            instance=instance,
            partition_key=JOB,
            raise_on_error=False,
            tags={"user": "ann"},
        )


def failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    return str(data.user_failure_data.description if data.user_failure_data else data.error_display_string)


def test_a_stream_is_chosen_from_a_dropdown_of_all_jobs(steered: Platform) -> None:
    for job in steering_jobs(steered):
        assert job.partitions_def is not None
        assert job.partitions_def.get_partition_keys() == sorted(steered.jobs)


def test_nothing_is_changed_when_nothing_supervises(steered: Platform) -> None:
    result = launch(steered, "start")
    assert not result.success
    assert "the supervisor was never heard of" in failure(result)
    assert releases.of_job(steered.store, JOB) == []


def test_a_stream_that_was_never_started_cannot_be_stopped(steered: Platform) -> None:
    services.beat(steered.store, leases.SUPERVISOR, {})
    result = launch(steered, "stop")
    assert not result.success
    assert "has no live release. `weir start word_count` makes one." in failure(result)


def test_start_freezes_the_first_release_and_stop_pause_and_restart_change_what_is_wanted(steered: Platform) -> None:
    services.beat(steered.store, leases.SUPERVISOR, {})
    release = ReleaseId(JOB, 1)
    for action, state in (("start", "run"), ("pause", "pause"), ("start", "run"), ("restart", "run"), ("stop", "stop")):
        result = launch(steered, action, reason=f"to {action}")
        assert result.success
        found = wanted.of(steered.store, release)
        assert found is not None
        assert (found.state, found.reason) == (state, f"to {action}")
    assert [known.state for known in releases.of_job(steered.store, JOB)] == ["live"]


def test_the_audit_names_user_and_run(steered: Platform) -> None:
    services.beat(steered.store, leases.SUPERVISOR, {})
    result = launch(steered, "start")
    newest = audit.read(steered.store, JOB, limit=1)[0]
    assert newest.who == f"ann in Dagster run {result.run_id}"
    assert newest.subject == f"{JOB}@v1"
