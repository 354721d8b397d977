"""Start, stop, pause and restart: what is wanted of releases; the supervisor makes it true.

Every name is resolved before anything is changed. A name is a job, which means its live release, or a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from platform_core.control import gaps, releases, wanted
from platform_core.control.store import ControlStore
from platform_core.control.wanted import State, Wanted
from platform_core.errors import UsageError
from platform_core.names import ReleaseId, named
from platform_core.operations.names import refuse_unknown, release_of
from platform_core.release.first import first_release
from platform_core.settings import Settings

Tell = Callable[[str], None]


def start(
    settings: Settings,
    store: ControlStore,
    names: Sequence[str],
    by: str,
    reason: str = "",
    *,
    accept_gap: bool = False,
    tell: Tell = lambda _: None,
) -> list[Wanted]:
    """The first start of a job freezes it as release v1. `accept_gap`: without records that retention has removed."""
    store.migrate()
    chosen = [_to_start(settings, store, name, by, tell) for name in names]
    for release in chosen if accept_gap else ():
        _accept_gaps(store, release, by, tell)
    return [wanted.want(store, release, "run", by, reason) for release in chosen]


def stop(settings: Settings, store: ControlStore, names: Sequence[str], by: str, reason: str = "") -> list[Wanted]:
    """After the batch in flight."""
    return _want(settings, store, names, "stop", by, reason)


def pause(settings: Settings, store: ControlStore, names: Sequence[str], by: str, reason: str = "") -> list[Wanted]:
    """Stop for a while: `weir status` shows it as paused."""
    return _want(settings, store, names, "pause", by, reason)


def restart(settings: Settings, store: ControlStore, names: Sequence[str], by: str, reason: str = "") -> list[Wanted]:
    """Another driver after the batch in flight, failures forgotten."""
    chosen = [release_of(settings, store, name) for name in names]
    return [wanted.restart(store, release, by, reason) for release in chosen]


def ever_started(store: ControlStore) -> list[str]:
    return [str(release) for release in wanted.all(store)]


def _want(
    settings: Settings, store: ControlStore, names: Sequence[str], state: State, by: str, reason: str
) -> list[Wanted]:
    chosen = [release_of(settings, store, name) for name in names]
    return [wanted.want(store, release, state, by, reason) for release in chosen]


def _to_start(settings: Settings, store: ControlStore, name: str, by: str, tell: Tell) -> ReleaseId:
    job, release = named(name)
    if release is not None:
        return _refuse_retired(releases.get(store, release))
    if not releases.of_job(store, job):
        refuse_unknown(job, settings)
        tell(f"{job}: freezing release v1 ...")
    made = first_release(job, settings, store, by)
    for warning in made.manifest.get("warnings", ()):
        tell(f"warning: {warning}")
    return made.id


def _refuse_retired(found: releases.Release) -> ReleaseId:
    if found.state == "retired":
        raise UsageError(f"{found.id} is retired: nothing of it is left.", remedy="Make a new one: `weir release`.")
    return found.id


def _accept_gaps(store: ControlStore, release: ReleaseId, by: str, tell: Tell) -> None:
    lost = gaps.accept(store, release, by)
    if not lost:
        raise UsageError(f"{release} has met no gap that waits to be accepted.", remedy="Start it without that.")
    tell(f"{release}: goes on without {sum(gap.records for gap in lost)} records, {', '.join(map(str, lost))}")
