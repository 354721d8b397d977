"""The jobs of Dagster's dropdowns, launched on a platform that really runs."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from platform_core.orchestrate.changing import changing_jobs
from platform_core.orchestrate.platform import Platform as Declared
from platform_core.orchestrate.steering import USER_TAG, steering_jobs
from tests.stack.running import Platform, job_in

WHO = "ann"


def launched(platform: Platform, action: str, job: str, also: Sequence[str] = (), **asked: str) -> str:
    """What the run said; the test's failure where the run failed."""
    jobs = {name: job_in(platform.settings.root, name) for name in (job, *also)}
    declared = Declared(platform.settings, jobs, {}, {}, {})
    (chosen,) = [one for one in (*steering_jobs(declared), *changing_jobs(declared)) if one.name == action]
    config = {"ops": {f"{action}_stream": {"config": {**asked, **({"also": [*also]} if also else {})}}}}
    try:
        with dg.DagsterInstance.ephemeral() as instance:
            ran = chosen.execute_in_process(config, instance=instance, partition_key=job, tags={USER_TAG: WHO})
    finally:
        declared.store.close()
    (output,) = [event for event in ran.all_events if event.is_successful_output]
    return str(output.step_output_data.metadata["said"].value)
