"""Jobs that change what runs: a plan, a release that replays, a comparison, a cutover, the way back, and retiring.

Each takes its stream from the dropdown and lasts seconds, for the replay itself is the supervisor's; each leaves its
audit line, `weir history JOB`.
"""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from platform_core.cutover.model import Cutover
from platform_core.errors import BatchFailed
from platform_core.operations import Caller, change
from platform_core.operations.compare import compare
from platform_core.operations.plan import plan
from platform_core.operations.wait import for_cutover, refuse_aborted
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.steering import Request, Why, stream_job
from platform_core.release.plan.wording import markdown
from platform_core.release.starting import EARLIEST


class From(Why):
    start: str = Field(EARLIEST, description="earliest, or a time as in 2026-01-31T12:00:00Z")


class Together(Why):
    also: list[str] = Field([], description="further streams that move in the same step, as in [word_count]")


class Anew(Why):
    start: str = Field(description="earliest, or a time as in 2026-01-31T12:00:00Z")


def changing_jobs(platform: Platform) -> list[dg.JobDefinition]:
    return [
        stream_job(platform, "plan", _plan, _ABOUT_PLAN, looks=True),
        stream_job(platform, "release", _release, _ABOUT_RELEASE, From, repeats=False),
        stream_job(platform, "compare", _compare, _ABOUT_COMPARE),
        stream_job(platform, "retire", _retire, _ABOUT_RETIRE, repeats=False),
        stream_job(platform, "cut_over", _cut_over, _ABOUT_CUT_OVER, Together, repeats=False),
        stream_job(platform, "roll_back", _roll_back, _ABOUT_ROLL_BACK, Together, repeats=False),
        stream_job(platform, "reset", _reset, _ABOUT_RESET, Anew, repeats=False),
    ]


def _plan(caller: Caller, request: Request) -> str:
    return markdown(plan(caller, request.job))


def _release(caller: Caller, request: Request) -> str:
    made = change.release(caller, request.job, request.start, again=True)
    return f"{made.id} replays from {made.replay_from.asked if made.replay_from else 'earliest'}"


def _compare(caller: Caller, request: Request) -> str:
    outcome = compare(caller, request.job)
    pair = f"{outcome.found.left} and {outcome.found.right}"
    if not outcome.verdict.passed:
        raise BatchFailed(
            f"{pair} differ: {'; '.join(outcome.verdict.reasons)}.",
            remedy=f"`weir compare {request.job} --html FILE` shows the rows side by side.",
        )
    return f"{pair} do not differ; {'; '.join(outcome.verdict.notes) or 'nothing had to be explained'}"


def _cut_over(caller: Caller, request: Request) -> str:
    return _ended(caller, change.cut_over(caller, _together(request)))


def _roll_back(caller: Caller, request: Request) -> str:
    return _ended(caller, change.roll_back(caller, _together(request)))


def _together(request: Request) -> list[str]:
    return list(dict.fromkeys([request.job, *request.also]))


def _ended(caller: Caller, asked: Cutover) -> str:
    found = for_cutover(caller.store, asked)
    refuse_aborted(found)
    return f"{found.kind} {found.id}: {', '.join(f'{move.new} is live' for move in found.moves)}"


def _reset(caller: Caller, request: Request) -> str:
    made = change.reset(caller, request.job, request.start)
    return f"{made.new} is live and begins at {request.start}; {made.old} stopped, its table stays until it is retired"


def _retire(caller: Caller, request: Request) -> str:
    """The oldest that is on standby: a candidate that was not wanted after all is retired by name, from the CLI."""
    gone = change.retire_oldest_standby(caller, request.job)
    return f"removed {', '.join(gone)}"


_ABOUT_PLAN = (
    "Compares the working tree with the live release and changes nothing: no change, a revision, or must replay, with "
    "the reasons, what a replay would read and take, and whom it touches. The plan stands in the run's log and output."
)
_ABOUT_RELEASE = (
    "Freezes the working tree as the stream's candidate. It replays history beside the live release, then follows."
)
_ABOUT_RESET = (
    "Stops the stream and starts over, as a new release of the working tree, from where the launchpad says. Readers "
    "see its table at once, with what it has by then; the old one stays until it is retired. With room for both "
    "tables, `release` and `cut_over` do the same without a gap."
)
_TOGETHER = "Streams named under `also` in the launchpad move in the same step: no reader sees one without the others."
_ABOUT_CUT_OVER = (
    f"Makes the candidate live at one exact offset. Refused unless the newest comparison passed. {_TOGETHER}"
)
_ABOUT_ROLL_BACK = f"Makes the former release live again, from the failing one's last commit on. {_TOGETHER}"
_ABOUT_COMPARE = (
    "Compares the candidate's table with the live one's at the same offsets; the run fails when they differ."
)
_ABOUT_RETIRE = "Removes the oldest release on standby: table, topic, checkpoint, group and code. For good."
