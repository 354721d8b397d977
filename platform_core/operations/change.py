"""Release, revise, cut over, roll back, reset, retire: what changes the releases that there are, and which is live."""

from __future__ import annotations

from collections.abc import Sequence

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.cutover import request
from platform_core.cutover.model import Cutover
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.operations import Caller, supervised
from platform_core.operations.names import jobs_of, refuse_unknown
from platform_core.release import reset as resetting
from platform_core.release import retire as retiring
from platform_core.release import revising
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.reset import Reset
from platform_core.release.starting import EARLIEST


def release(caller: Caller, job: str, start: str = EARLIEST, *, again: bool = False) -> Release:
    """The working tree as the job's candidate, which replays beside the live release; `again`: also the same code."""
    refuse_unknown(caller, job)
    caller.store.migrate()
    options = CandidateOptions(start, caller.reason, again)
    return release_candidate(job, caller.settings, caller.store, caller.by, options)


def revise(caller: Caller, job: str, back_to: int | None = None) -> Release:
    """Other code for the live release: the working tree's, or that of the former revision `back_to`."""
    caller.store.migrate()
    if back_to is not None:
        return revising.go_back(job, back_to, caller.settings, caller.store, caller.by, caller.reason)
    refuse_unknown(caller, job)
    return revising.revise(job, caller.settings, caller.store, caller.by, caller.reason)


def cut_over(caller: Caller, names: Sequence[str], seconds: float = request.DEADLINE_SECONDS) -> Cutover:
    """Asked for, not done: `wait.for_cutover`. After so many seconds it is aborted."""
    supervised.require(caller)
    jobs_of(caller, names)
    return request.cut_over(caller.store, names, caller.by, reason=caller.reason, seconds=seconds)


def roll_back(caller: Caller, names: Sequence[str], seconds: float = request.DEADLINE_SECONDS) -> Cutover:
    supervised.require(caller)
    jobs_of(caller, names)
    return request.roll_back(caller.store, names, caller.by, reason=caller.reason, seconds=seconds)


def reset(caller: Caller, job: str, start: str) -> Reset:
    """A new release, live at once, from there; the old one is stopped, and its table stays."""
    refuse_unknown(caller, job)
    return resetting.reset(caller.settings, caller.store, job, start, caller.by, caller.reason)


def retire(caller: Caller, release: ReleaseId) -> list[str]:
    """What was removed."""
    return retiring.retire(caller.settings, caller.store, release, caller.by)


def retire_oldest_standby(caller: Caller, job: str) -> list[str]:
    found = next((one.id for one in releases.of_job(caller.store, job) if one.state == "standby"), None)
    if found is None:
        raise UsageError(f"{job} has no release on standby.", remedy="`weir status` lists its releases.")
    return retire(caller, found)
