"""Release, revise, cut over, roll back, reset, retire: what changes the releases that there are, and which is live."""

from __future__ import annotations

from collections.abc import Sequence

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.cutover import request
from platform_core.cutover.model import Cutover
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.operations import supervised
from platform_core.operations.names import jobs_of, refuse_unknown
from platform_core.release import reset as resetting
from platform_core.release import retire as retiring
from platform_core.release import revising
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.reset import Reset
from platform_core.settings import Settings


def release(settings: Settings, store: ControlStore, job: str, by: str, asked: CandidateOptions) -> Release:
    """The working tree as the job's candidate, which replays beside the live release."""
    refuse_unknown(job, settings)
    store.migrate()
    return release_candidate(job, settings, store, by, asked)


def revise(
    settings: Settings, store: ControlStore, job: str, by: str, note: str = "", back_to: int | None = None
) -> Release:
    """Other code for the live release: the working tree's, or that of the former revision `back_to`."""
    store.migrate()
    if back_to is not None:
        return revising.go_back(job, back_to, settings, store, by, note)
    refuse_unknown(job, settings)
    return revising.revise(job, settings, store, by, note)


def cut_over(
    settings: Settings,
    store: ControlStore,
    names: Sequence[str],
    by: str,
    reason: str = "",
    seconds: float = request.DEADLINE_SECONDS,
) -> Cutover:
    """Asked for, not done: `wait.for_cutover`. After so many seconds it is aborted."""
    supervised.require(store)
    jobs_of(settings, store, names)
    return request.cut_over(store, names, by, reason=reason, seconds=seconds)


def roll_back(
    settings: Settings,
    store: ControlStore,
    names: Sequence[str],
    by: str,
    reason: str = "",
    seconds: float = request.DEADLINE_SECONDS,
) -> Cutover:
    supervised.require(store)
    jobs_of(settings, store, names)
    return request.roll_back(store, names, by, reason=reason, seconds=seconds)


def reset(settings: Settings, store: ControlStore, job: str, start: str, by: str, reason: str = "") -> Reset:
    """A new release, live at once, from there; the old one is stopped, and its table stays."""
    refuse_unknown(job, settings)
    return resetting.reset(settings, store, job, start, by, reason)


def retire(settings: Settings, store: ControlStore, release: ReleaseId, by: str) -> list[str]:
    """What was removed."""
    return retiring.retire(settings, store, release, by)


def retire_oldest_standby(settings: Settings, store: ControlStore, job: str, by: str) -> list[str]:
    found = next((one.id for one in releases.of_job(store, job) if one.state == "standby"), None)
    if found is None:
        raise UsageError(f"{job} has no release on standby.", remedy="`weir status` lists its releases.")
    return retire(settings, store, found, by)
