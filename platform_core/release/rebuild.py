"""`weir doctor --rebuild`: aliases from the log in the warehouse, releases from their archives, for a store without."""

from __future__ import annotations

import json

from platform_core.control import aliases, releases
from platform_core.control.releases import State
from platform_core.control.store import ControlStore, Cursor
from platform_core.cutover import alias_log
from platform_core.cutover.alias_log import AliasMove
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.release import manifest
from platform_core.release.manifest import MANIFEST, Manifest
from platform_core.settings import Settings


def rebuild(settings: Settings, store: ControlStore, by: str) -> list[str]:
    """Sentences about what was restored. What the store knows as well or better stays as it is."""
    logged = alias_log.newest(alias_log.read(settings))
    if not logged:
        raise UsageError(f"{settings.storage.alias_log} holds no alias.", remedy="Restore the file from a copy.")
    store.migrate()
    told = [sentence for line in logged.values() for sentence in _releases_of(line, settings, store, by)]
    for line in logged.values():
        told += _alias(line, store, by)
    return told


def _releases_of(line: AliasMove, settings: Settings, store: ControlStore, by: str) -> list[str]:
    """Every archive of the job, so that no number is used twice."""
    known = {release.id for release in releases.of_job(store, line.release.job)}
    found = [one for one in _archives(settings, line.release.job) if one.release not in known]
    for one in found:
        with store.transaction() as cursor:
            _restore(cursor, one, _state_of(one.release, line.release), by)
    return [f"{one.release}: restored from its archive as {_state_of(one.release, line.release)}" for one in found]


def _archives(settings: Settings, job: str) -> list[Manifest]:
    folders = sorted((settings.storage.archives / job).glob(f"v*/{MANIFEST}"))
    found = [manifest.read(path.parent) for path in folders]
    return [one for one in found if one.revision == 0]


def _state_of(release: ReleaseId, live: ReleaseId) -> State:
    """A candidate's way is not known: it is to be replayed again."""
    if release == live:
        return "live"
    return "standby" if release.number < live.number else "failed"


def _restore(cursor: Cursor, one: Manifest, state: State, by: str) -> None:
    releases.add(
        cursor,
        one.release,
        archive_sha256=one.archive_sha256,
        fingerprint=one.fingerprint,
        manifest=json.loads(one.to_json()),
        topics=dict(one.topics),
        by=one.created_by,
        state=state,
        reason=f"restored from its archive by {by}",
    )


def _alias(line: AliasMove, store: ControlStore, by: str) -> list[str]:
    there = aliases.live(store, line.table)
    if there is not None and there.since >= line.since:
        return []
    said = "restored from aliases.jsonl"
    with store.transaction() as cursor:
        if there is not None and there.release != line.release:
            releases.change(cursor, there.release, "standby", said, by=by)
        releases.change(cursor, line.release, "live", said, by=by)
        aliases.move(cursor, line.table, line.release, line.position, by)
    before = "nothing" if there is None else str(there.release)
    return [f"{line.table}: shows {line.release}, live since {line.since:%Y-%m-%d %H:%M:%S} UTC; it showed {before}"]
