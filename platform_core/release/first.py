"""The first release of a job: frozen at the first start, and live at once, as nobody reads its table yet."""

from __future__ import annotations

from platform_core.control import aliases, releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError
from platform_core.release.freeze import freeze
from platform_core.settings import Settings


def first_release(job: str, settings: Settings, store: ControlStore, by: str) -> Release:
    """The job's live release; v1, frozen now, when it has none. A crash in the middle is completed by the next call."""
    known = releases.of_job(store, job)
    live = next((release for release in known if release.state == "live"), None)
    if live is not None:
        return live
    if not known:
        return _made_live(freeze(job, settings, store, by), store, by)
    if len(known) == 1 and known[0].state == "frozen":
        return _made_live(known[0], store, by)
    states = ", ".join(f"{release.id} is {release.state}" for release in known)
    raise UsageError(
        f"No release of {job!r} is live: {states}.", remedy=f"Start one by name, as in `weir start {job}@v1`."
    )


def _made_live(release: Release, store: ControlStore, by: str) -> Release:
    table = str(release.manifest["output"]["table"])
    taken = aliases.live(store, table)
    if taken is not None and taken.release.job != release.id.job:
        raise UsageError(
            f"{release.id} writes table {table!r}, whose live release is {taken.release}.",
            remedy="Give one of the two jobs another output table.",
        )
    with store.transaction() as cursor:
        aliases.move(cursor, table, release.id, None, by)
        releases.change(cursor, release.id, "live", "the first release", by=by)
    return releases.get(store, release.id)
