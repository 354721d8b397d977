"""`weir release JOB --revision`: other code for the live release, which keeps its number, state and table."""

from __future__ import annotations

import json

from platform_core.control import releases, revisions
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError
from platform_core.release import archive
from platform_core.release.candidate import changes_now
from platform_core.release.freeze import Slot, frozen
from platform_core.release.manifest import Manifest
from platform_core.release.plan.changes import ChangeKind, DeclaredChange, kind_of
from platform_core.release.plan.tree import tree_of
from platform_core.settings import Settings


def revise(job: str, settings: Settings, store: ControlStore, by: str, note: str) -> Release:
    """Refused when the change decides rows: those that are there already would be of the other code."""
    live = releases.live_or_refused(store, job)
    _refuse_wrong(job, live, changes_now(settings, live, tree_of(settings, job)))

    def numbered() -> Slot:
        return Slot(live.id, revisions.next_number(store, live.id))

    def recorded(manifest: Manifest) -> Release:
        revisions.adopt(
            store,
            live.id,
            manifest.revision,
            archive_sha256=manifest.archive_sha256,
            fingerprint=manifest.fingerprint,
            manifest=json.loads(manifest.to_json()),
            by=by,
            reason=note,
        )
        return releases.get(store, live.id)

    return frozen(job, settings, by, numbered, recorded)


def go_back(job: str, number: int, settings: Settings, store: ControlStore, by: str, note: str) -> Release:
    """To a revision that the live release had; its archive is proven first."""
    live = releases.live_or_refused(store, job)
    if number == live.revision:
        raise UsageError(f"{live.title} is in force already.", remedy=f"See `weir history {job}`.")
    if number in [0, *(one.number for one in revisions.of_release(store, live.id))]:
        archive.verify(settings, live.id, number)
    revisions.go_back(store, live.id, number, by=by, reason=note)
    return releases.get(store, live.id)


def _refuse_wrong(job: str, live: Release, found: list[DeclaredChange]) -> None:
    if kind_of(found) is ChangeKind.NONE:
        raise UsageError(f"Nothing has changed since {live.title} was made.", remedy="Edit the job first.")
    deciding = [f"{one} [{one.where}]" for one in found if one.kind is ChangeKind.REPLAY]
    if deciding:
        raise UsageError(
            f"This is no revision of {live.id}, rows would differ: {'; '.join(deciding)}.",
            remedy=f"`weir release {job}` makes a candidate that replays history.",
        )
