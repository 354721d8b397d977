"""Start, stop, pause and restart: what is wanted of releases; the supervisor makes it true.

Every name is resolved before anything is changed. A name is a job, which means its live release, or a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from platform_core.control import gaps, releases, wanted
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.control.wanted import State, Wanted
from platform_core.errors import UsageError
from platform_core.names import ReleaseId, named
from platform_core.operations import Caller
from platform_core.operations.names import refuse_unknown, release_of
from platform_core.release.first import first_release

Tell = Callable[[str], None]


def start(
    caller: Caller, names: Sequence[str], *, accept_gap: bool = False, tell: Tell = lambda _: None
) -> list[Wanted]:
    """The first start of a job freezes it as release v1. `accept_gap`: without records that retention has removed."""
    caller.store.migrate()
    chosen = [_to_start(caller, name, tell) for name in names]
    for release in chosen if accept_gap else ():
        _accept_gaps(caller, release, tell)
    return _want(caller, chosen, "run")


def stop(caller: Caller, names: Sequence[str]) -> list[Wanted]:
    """After the batch in flight."""
    return _want(caller, _meant(caller, names), "stop")


def pause(caller: Caller, names: Sequence[str]) -> list[Wanted]:
    """Stop for a while: `weir status` shows it as paused."""
    return _want(caller, _meant(caller, names), "pause")


def restart(caller: Caller, names: Sequence[str]) -> list[Wanted]:
    """Another driver after the batch in flight, failures forgotten."""
    chosen = _meant(caller, names)
    return [wanted.restart(caller.store, release, caller.by, caller.reason) for release in chosen]


def ever_started(store: ControlStore) -> list[str]:
    return [str(release) for release in wanted.all(store)]


def _meant(caller: Caller, names: Sequence[str]) -> list[ReleaseId]:
    return [release_of(caller, name) for name in names]


def _want(caller: Caller, chosen: Sequence[ReleaseId], state: State) -> list[Wanted]:
    return [wanted.want(caller.store, release, state, caller.by, caller.reason) for release in chosen]


def _to_start(caller: Caller, name: str, tell: Tell) -> ReleaseId:
    job, release = named(name)
    if release is not None:
        return _refuse_retired(releases.get(caller.store, release))
    if not releases.of_job(caller.store, job):
        refuse_unknown(caller, job)
        tell(f"{job}: freezing release v1 ...")
    made = first_release(job, caller.settings, caller.store, caller.by)
    for warning in made.manifest.get("warnings", ()):
        tell(f"warning: {warning}")
    return made.id


def _refuse_retired(found: Release) -> ReleaseId:
    if found.state == "retired":
        raise UsageError(f"{found.id} is retired: nothing of it is left.", remedy="Make a new one: `weir release`.")
    return found.id


def _accept_gaps(caller: Caller, release: ReleaseId, tell: Tell) -> None:
    lost = gaps.accept(caller.store, release, caller.by)
    if not lost:
        raise UsageError(f"{release} has met no gap that waits to be accepted.", remedy="Start it without that.")
    tell(f"{release}: goes on without {sum(gap.records for gap in lost)} records, {', '.join(map(str, lost))}")
