"""Release, revise, cut over, roll back: what changes which release readers see, and of what code."""

from __future__ import annotations

from collections.abc import Sequence

from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.cutover import request
from platform_core.cutover.model import Cutover
from platform_core.operations import supervised
from platform_core.operations.names import refuse_unknown
from platform_core.release import revising
from platform_core.release.candidate import Asked, release_candidate
from platform_core.settings import Settings


def release(settings: Settings, store: ControlStore, job: str, by: str, asked: Asked) -> Release:
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
    store: ControlStore, names: Sequence[str], by: str, reason: str = "", seconds: float = request.DEADLINE_SECONDS
) -> Cutover:
    """Asked for, not done: `wait.for_cutover`."""
    supervised.require(store)
    return request.cut_over(store, names, by, reason=reason, seconds=seconds)


def roll_back(
    store: ControlStore, names: Sequence[str], by: str, reason: str = "", seconds: float = request.DEADLINE_SECONDS
) -> Cutover:
    supervised.require(store)
    return request.roll_back(store, names, by, reason=reason, seconds=seconds)
