"""The end of a release: first nobody may need it, then nothing of it is left. Asked again, it goes on where it was."""

from __future__ import annotations

import logging
from pathlib import Path

from platform_core.broker import Broker
from platform_core.control import aliases, clients, holds, leases, releases, wanted
from platform_core.control.leases import driver_lease
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore, Cursor
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.errors import ArchiveError, LeaseHeld, ServiceUnavailable, SetupError, UsageError
from platform_core.names import ReleaseId
from platform_core.release import manifest
from platform_core.release.environment import Locks
from platform_core.release.manifest import Manifest
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.streaming.sink.table import remains
from platform_core.telemetry import event
from platform_core.waiting import looks

logger = logging.getLogger(__name__)

STOP_SECONDS = 90.0


def retire(
    settings: Settings, store: ControlStore, release: ReleaseId, by: str, *, wait: float = STOP_SECONDS
) -> list[str]:
    """What was removed.

    1. Nobody needs it; it is retired and wanted to stop, in one transaction: nobody can bind to it afterwards.
    2. Its driver ends; one that is frozen is fenced.
    3. Table, lookups, checkpoint, topic, group and code are removed.
    4. Nothing of it is left.
    """
    found = releases.get(store, release)
    _give_up(settings, store, found, by)  # 1
    await_end(store, release, wait)  # 2
    things = things_of(settings, found)
    gone = [thing.what for thing in things if thing.exists() and (thing.remove(), True)[1]]  # 3
    _forget(store, release)
    _prove(release, things)  # 4
    return gone


def blockers(settings: Settings, store: ControlStore, release: ReleaseId) -> list[str]:
    """Whatever needs it."""
    found = releases.get(store, release)
    with store.transaction() as cursor:
        return _blockers(settings, cursor, found)


def things_of(settings: Settings, release: Release) -> list[Remains]:
    """Code last: while it is there, the release can be asked to be retired again, and knows what it had."""
    storage, declared = settings.storage, release.manifest.get("declared", {})
    found = remains(Retiring(settings, Broker(settings), release.id, declared))
    found.append(Remains.of("checkpoint", storage.checkpoint(release.id)))
    found += [Remains.of("comparisons", Place(str(path))) for path in _comparisons(settings, release.id)]
    found += [Remains.of("environment", Place(str(path))) for path in _environments(settings, release)]
    archives = [*storage.revisions(release.id), storage.archive(release.id)]
    return found + [Remains.of(f"code {path.name}", Place(str(path))) for path in archives]


def _give_up(settings: Settings, store: ControlStore, release: Release, by: str) -> None:
    with store.transaction() as cursor:
        needed = _blockers(settings, cursor, release)
        if needed:
            raise UsageError(
                f"{release.id} cannot be retired: {'; '.join(needed)}.", remedy="Move or end these, then ask again."
            )
        if releases.locked_states(cursor, [release.id])[release.id] != "retired":
            releases.change(cursor, release.id, "retired", "", by=by)
            wanted.ask(cursor, release.id, "stop", by, "it is retired")


def _blockers(settings: Settings, cursor: Cursor, release: Release) -> list[str]:
    """The alias is locked first: a cutover that is asked for now waits, and then finds the release retired."""
    table = str(release.manifest.get("output", {}).get("table", ""))
    live = aliases.locked(cursor, [table])
    releases.locked_states(cursor, [release.id])
    needed = [f"it is the live release of {table}"] if live.get(table) == release.id else []
    needed += [f"{one.kind} {one.id} is {one.phase}" for one in _open(cursor, release.id)]
    needed += _fresh(cursor, release.id, settings.moves.readers_seconds)
    needed += [f"client {one.name} is pinned to it" for one in clients.of_release(cursor, release.id)]
    return needed + [str(hold) for hold in holds.in_force(cursor, release.id)]


def _open(cursor: Cursor, release: ReleaseId) -> list[Cutover]:
    found = protocol.open_in(cursor)
    return [one for one in found if one.move_of(release) is not None]


def _fresh(cursor: Cursor, release: ReleaseId, seconds: float) -> list[str]:
    cursor.execute(
        "select (%s - extract(epoch from clock_timestamp() - max(c.flipped_at)))::float8 as left from weir.cutovers c "
        "join weir.cutover_moves m on m.cutover = c.id where m.old_job = %s and m.old_number = %s",
        (seconds, release.job, release.number),
    )
    left = (cursor.fetchone() or {"left": None})["left"]
    if left is None or left <= 0:
        return []
    return [f"it was live until a moment ago, and readers may still read it for {left:.0f} s"]


def await_end(store: ControlStore, release: ReleaseId, seconds: float = STOP_SECONDS) -> None:
    """Until its driver, which is wanted to stop, has given its lease up; fenced then, so that none that is frozen
    writes when it wakes."""
    for again in looks(seconds, pause=0.3):
        try:
            with store.transaction() as cursor:
                leases.fence(cursor, driver_lease(release))
            return
        except LeaseHeld as error:
            if not again:
                raise ServiceUnavailable(
                    f"{release} is wanted to stop, and its driver does not end: {error.what}",
                    remedy="Look at its log, then run the command again: it goes on from there.",
                ) from error


def _forget(store: ControlStore, release: ReleaseId) -> None:
    """Positions are many and of no use any more. Its row, its totals and the audit stay."""
    with store.transaction() as cursor:
        key = (release.job, release.number)
        cursor.execute("delete from weir.positions where job = %s and number = %s", key)
        cursor.execute("delete from weir.progress_history where job = %s and number = %s", key)


def _prove(release: ReleaseId, things: list[Remains]) -> None:
    left = [thing.what for thing in things if thing.exists()]
    if left:
        raise SetupError(
            f"{release} is retired, and not all of it is gone: {', '.join(left)}.",
            remedy="See who writes there, then run the command again.",
        )


def _comparisons(settings: Settings, release: ReleaseId) -> list[Path]:
    """What was kept of comparisons with it, so that the next one would read less."""
    kept, name = settings.storage.comparisons(release.job).glob("*"), release.group
    return sorted(path for path in kept if f"-{name}-" in f"-{path.name}-")


def _environments(settings: Settings, release: Release) -> list[Path]:
    """Those that were built for its locks, and for no other release's that is still there. A release whose manifest
    cannot be read may need any of them: they all stay."""
    mine = {settings.storage.archive(release.id), *settings.storage.revisions(release.id)}
    folders = {path.parent for path in settings.storage.archives.glob(f"*/v*/{manifest.MANIFEST}")}
    try:
        needed = {_environment(manifest.read(folder)) for folder in folders - mine}
        names = {_environment(manifest.read(folder)) for folder in folders & mine}
    except ArchiveError as error:
        event(logger, "environments kept", level=logging.WARNING, release=release.id, error=error)
        return []
    return sorted(settings.storage.environments / name for name in names - needed)


def _environment(found: Manifest) -> str:
    return Locks(Path(), found.protocol, found.requirements_sha256, found.jars_sha256).name
