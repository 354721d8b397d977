"""`weir reset JOB`: it stops and starts over from elsewhere, for those without room for two copies of its table."""

from __future__ import annotations

from dataclasses import dataclass

from platform_core.control import aliases, audit, releases, wanted
from platform_core.control.releases import Release
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore, Cursor
from platform_core.cutover import protocol
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.release.freeze import Slot, frozen
from platform_core.release.manifest import Manifest
from platform_core.release.plan.tree import tree_of
from platform_core.release.retire import await_end
from platform_core.release.starting import start_of
from platform_core.settings import Settings


@dataclass(frozen=True)
class Reset:
    old: ReleaseId
    new: ReleaseId


def reset(settings: Settings, store: ControlStore, job: str, asked: str, by: str, reason: str = "") -> Reset:
    """A crash before the last step leaves the job as it was, or stopped: then `weir start` goes on where it was.

    1. Nothing else changes the job, and the broker has what will be read.
    2. The tree is frozen as the next release.
    3. The live release's driver ends.
    4. One transaction: readers see the new one, which is wanted to run.
    """
    old = releases.live_or_refused(store, job)
    _refuse_busy(store, job, old)  # 1
    # what is live reads no raw tables: a reset begins with what the broker has
    start = start_of(settings, None, tree_of(settings, job).declared, asked, old.replay_from)
    new = _made(settings, store, job, start, by, reason or f"reset from {asked}")  # 2
    table = str(old.manifest["output"]["table"])
    releases.refuse_other_table(new, table)
    wanted.want(store, old.id, "stop", by, f"reset to {new.id}")  # 3
    await_end(store, old.id)
    with store.transaction() as cursor:  # 4
        _swap(cursor, table, old.id, new.id, by, f"reset from {asked}")
    return Reset(old.id, new.id)


def _refuse_busy(store: ControlStore, job: str, live: Release) -> None:
    releases.refuse_candidate(releases.of_job(store, job))
    under_way = protocol.of_release(store, live.id)
    if under_way is not None:
        raise UsageError(
            f"{live.id} takes part in {under_way.kind} {under_way.id}, which is {under_way.phase}.",
            remedy="Wait for its end, then reset.",
        )


def _made(settings: Settings, store: ControlStore, job: str, start: StartPosition, by: str, reason: str) -> Release:
    def numbered() -> Slot:
        return Slot(ReleaseId(job, releases.next_number(store, job)))

    def recorded(manifest: Manifest) -> Release:
        with store.transaction() as cursor:
            return releases.add(
                cursor,
                manifest.release,
                **manifest.row(),
                by=by,
                reason=reason,
                replay_from=start,
            )

    return frozen(job, settings, by, numbered, recorded)


def _swap(cursor: Cursor, table: str, old: ReleaseId, new: ReleaseId, by: str, said: str) -> None:
    """The alias is locked first: whoever asks for a cutover meanwhile waits, and finds another live release."""
    live = aliases.locked(cursor, [table]).get(table)
    open_ones = [one for one in protocol.open_in(cursor) if table in one.tables]
    if live != old or open_ones:
        raise UsageError(
            f"Table {table!r} shows {live} now{', and a cutover of it is under way' if open_ones else ''}.",
            remedy=f"Look at `weir history {old.job}`. {old} was stopped, and {new} is not live.",
        )
    aliases.move(cursor, table, new, None, by)
    releases.change(cursor, old, "standby", said, by=by)
    releases.change(cursor, new, "live", said, by=by)
    wanted.ask(cursor, new, "run", by, said)
    audit.write(cursor, by, "reset", new.job, {"from": str(old), "to": str(new)})
