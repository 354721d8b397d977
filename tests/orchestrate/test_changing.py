"""The jobs that change what runs, launched as from the page."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import dagster as dg
import pytest

from platform_core.control import services
from platform_core.control.owners import Owner
from platform_core.declare.discover import load_jobs
from platform_core.orchestrate.changing import changing_jobs
from platform_core.orchestrate.platform import Platform
from tests.conftest import Database

pytestmark = pytest.mark.stack
JOB = "word_count"


@pytest.fixture
def supervised(postgres: Database, tmp_path: Path) -> Generator[Platform]:
    """Somebody supervises, and no stream was ever started."""
    settings = postgres.another(tmp_path)
    platform = Platform(settings, load_jobs(settings.root), {}, {}, {})
    platform.store.migrate()
    services.beat(platform.store, "supervisor", {"pid": Owner.this_process().pid})
    yield platform
    platform.store.close()


def run(platform: Platform, action: str, **asked: object) -> dg.ExecuteInProcessResult:
    (job,) = [job for job in changing_jobs(platform) if job.name == action]
    config = {"ops": {f"{action}_stream": {"config": asked}}}
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(config, instance=instance, partition_key=JOB, raise_on_error=False)


def launch(platform: Platform, action: str, **asked: object) -> str:
    """Why the run failed."""
    return why_not(run(platform, action, **asked))


def why_not(result: dg.ExecuteInProcessResult) -> str:
    assert not result.success
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    return str(data.user_failure_data.description if data.user_failure_data else data.error_display_string)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("release", "has no live release"),
        ("compare", "has no live release"),
        ("cut_over", JOB),
        ("roll_back", JOB),
        ("retire", "has no release on standby"),
        ("reset", "has no live release"),
    ],
)
def test_what_cannot_be_done_fails_the_run_with_one_sentence(supervised: Platform, action: str, why: str) -> None:
    told = launch(supervised, action, **({"start": "earliest"} if action == "reset" else {}))
    assert why in told
    assert "Traceback" not in told


@pytest.mark.parametrize("action", ["cut_over", "roll_back"])
def test_streams_that_move_together_are_asked_for_in_one_step(supervised: Platform, action: str) -> None:
    assert "There is no job 'no_such'." in launch(supervised, action, also=["no_such"])
    assert "no live release" in launch(supervised, action, also=["stock_stats"])


def test_a_plan_is_told_and_needs_nobody_who_supervises(supervised: Platform) -> None:
    with supervised.store.transaction() as cursor:
        cursor.execute("delete from weir.services")
    result = run(supervised, "plan")
    assert result.success
    (output,) = [event for event in result.all_events if event.is_successful_output]
    told = str(output.step_output_data.metadata["said"].value)
    assert f"`{JOB}`: must replay" in told
    assert "no release of the job is live: its first one reads everything" in told


def test_each_takes_its_stream_from_a_dropdown_and_says_what_it_does(supervised: Platform) -> None:
    for job in changing_jobs(supervised):
        assert job.partitions_def is not None
        assert job.partitions_def.get_partition_keys() == sorted(supervised.jobs)
        assert job.description
        assert job.description.endswith("Choose the stream as the partition.")


@pytest.mark.parametrize("began", [True, False])
def test_a_change_whose_worker_was_lost_is_made_again_only_when_it_never_began(
    supervised: Platform, began: bool
) -> None:
    (job,) = [job for job in changing_jobs(supervised) if job.name == "cut_over"]
    with dg.DagsterInstance.ephemeral() as instance:
        first = instance.create_run_for_job(job)
        if began:
            instance.report_dagster_event(dg.DagsterEvent("PIPELINE_START", "cut_over"), run_id=first.run_id)
        asked_again = {"dagster/retry_number": "1", "dagster/parent_run_id": first.run_id}
        result = job.execute_in_process(instance=instance, partition_key=JOB, raise_on_error=False, tags=asked_again)
    assert ("its worker was lost" in why_not(result)) is began
