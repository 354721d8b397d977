"""Jobs that steer one stream: they write what is wanted and end; the supervisor makes it true."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg
from pydantic import Field

from platform_core.control.wanted import Wanted
from platform_core.errors import WeirError
from platform_core.operations import Caller, steer, supervised
from platform_core.orchestrate.keys import live_key
from platform_core.orchestrate.platform import Platform

USER_TAG = "user"  # set it in the launchpad's tags; the web page itself knows nobody


class Why(dg.Config):
    reason: str = Field("", description="kept in the audit")


@dataclass(frozen=True)
class Request:
    """What the launchpad says, and of which stream."""

    job: str
    reason: str
    start: str = ""  # of `release` and `reset`: earliest, or a time
    also: Sequence[str] = ()  # of `cut_over` and `roll_back`: streams that move in the same step


Act = Callable[[Caller, Request], str]  # says in a sentence what was done


def steering_jobs(platform: Platform) -> list[dg.JobDefinition]:
    return [stream_job(platform, name, act, about) for name, (act, about) in _ACTIONS.items()]


def _steered(change: Callable[[Caller, Sequence[str]], list[Wanted]]) -> Act:
    def act(caller: Caller, request: Request) -> str:
        (done,) = change(caller, [request.job])
        return f"{done.release} is now wanted to {done.state}, generation {done.generation}"

    return act


_ACTIONS: dict[str, tuple[Act, str]] = {
    "start": (
        _steered(steer.start),
        "Starts one stream, or resumes it where it stands. The first start freezes release v1.",
    ),
    "stop": (_steered(steer.stop), "Stops one stream after the batch in flight."),
    "pause": (
        _steered(steer.pause),
        "Stops one stream after the batch in flight, for a while: `weir status` shows it as paused.",
    ),
    "restart": (
        _steered(steer.restart),
        "Ends a stream's driver after the batch in flight and starts another, failures forgotten.",
    ),
}


def stream_job(
    platform: Platform,
    action: str,
    act: Act,
    about: str,
    asks: type[dg.Config] = Why,
    looks: bool = False,
    repeats: bool = True,
) -> dg.JobDefinition:
    """A job of one op for one stream, chosen as the partition: the page shows a dropdown; `asks`: its launchpad. One
    that only `looks` needs nobody who supervises; one that never `repeats` is not done again after a lost worker."""

    @dg.op(name=f"{action}_stream", description=about, config_schema=asks.to_config_schema().as_field())
    def op(context: dg.OpExecutionContext) -> None:
        user = context.run.tags.get(USER_TAG, "someone")
        request = Request(context.partition_key, **context.op_config)
        by = f"{user} in Dagster run {context.run_id}"
        if not repeats:
            _refuse_a_second_time(context.instance, context.run)
        said = _loudly(Caller(platform.settings, platform.store, by, request.reason), request, act, looks)
        context.log.info(said)
        context.add_output_metadata(
            {"said": dg.MetadataValue.md(said), "page": dg.MetadataValue.asset(live_key(request.job))}
        )

    @dg.job(
        name=action,
        description=f"{about} Choose the stream as the partition.",
        partitions_def=dg.StaticPartitionsDefinition(sorted(platform.jobs)),
        executor_def=dg.in_process_executor,
        tags={"weir/action": action, "dagster/priority": "10", "dagster/retry_strategy": "ALL_STEPS"},
    )
    def job() -> None:
        op()

    return job


def _loudly(caller: Caller, request: Request, act: Act, looks: bool) -> str:
    """A refusal is the run's failure, told in one sentence; none is retried."""
    try:
        if not looks:
            supervised.require(caller)
        return act(caller, request)
    except WeirError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error


def _refuse_a_second_time(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Dagster asks again for a run whose worker was lost. Where that had begun, nobody knows how far it came."""
    first = run.tags.get("dagster/parent_run_id") if "dagster/retry_number" in run.tags else None
    if first is not None and instance.get_run_stats(first).start_time is not None:
        raise dg.Failure(
            f"Nothing was changed: run {first} had begun this, and its worker was lost. `weir history` says how far it "
            "came; launch the job anew for what is missing.",
            allow_retries=False,
        )
