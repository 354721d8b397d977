"""`weir release JOB`: the working tree becomes the candidate that replays history beside the live release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from platform_core.broker import Broker
from platform_core.control import releases, wanted
from platform_core.control.position import records_between
from platform_core.control.releases import Release
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.declare import described
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.release import topics
from platform_core.release.declared import topics_in
from platform_core.release.freeze import Slot, frozen
from platform_core.release.manifest import Manifest
from platform_core.release.plan.changes import ChangeKind, DeclaredChange, kind_of
from platform_core.release.plan.estimate import time_of
from platform_core.release.plan.plan import changes_of, made_again
from platform_core.release.plan.tree import Tree, tree_of
from platform_core.release.starting import EARLIEST, start_of
from platform_core.settings import Settings


@dataclass(frozen=True)
class CandidateOptions:
    start: str = EARLIEST
    note: str = ""
    again: bool = False  # also when no row would differ


def release_candidate(job: str, settings: Settings, store: ControlStore, by: str, asked: CandidateOptions) -> Release:
    """1 refuse what needs no replay, 2 find where it begins, 3 freeze, 4 make its topics, 5 one row, wanted to run."""
    live = releases.live_or_refused(store, job)
    releases.refuse_candidate(releases.of_job(store, job))
    tree = tree_of(settings, job)
    if not asked.again:
        _refuse_needless(job, live, changes_now(settings, live, tree))  # 1
    start = start_of(settings, store, tree.declared, asked.start, live.replay_from)  # 2
    _refuse_lost_race(settings, store, live, tree.declared, start)

    def numbered() -> Slot:
        return Slot(ReleaseId(job, releases.next_number(store, job)))

    def recorded(manifest: Manifest) -> Release:
        make_topics(settings, manifest.release, manifest.declared)  # 4
        return _nominate(store, manifest, start, by, asked.note)  # 5

    return frozen(job, settings, by, numbered, recorded)  # 3


def _refuse_lost_race(
    settings: Settings, store: ControlStore, live: Release, declared: Mapping[str, Any], start: StartPosition
) -> None:
    """It reads a record of the end last, and the broker keeps that one for as long as any."""
    broker = Broker(settings)
    events = described.topics(described.transformed(declared).values())
    facts, first = broker.topics(events), broker.starts(start.offsets)
    needed = time_of(store, live.id, records_between(start.offsets, broker.ends(start.offsets)))
    for name, one in facts.items():
        landed = any(offset < first[name].get(partition, 0) for partition, offset in start.offsets[name].items())
        kept = one.retention_ms / 3_600_000
        if needed.sound and needed.hours and not landed and 0 <= kept < needed.hours and "compact" not in one.policy:
            raise UsageError(
                f"A replay from {start.asked} would lose the race: topic {name!r} keeps records for {kept:.3g} hours, "
                f"reading them takes about {needed.hours:.3g} ({needed.basis}).",
                remedy="Raise the topic's retention, land it, or replay from a later time, with --from.",
            )


def changes_now(settings: Settings, live: Release, tree: Tree) -> list[DeclaredChange]:
    """Of the tree, and of the topics that it reads."""
    return [*made_again(settings, live, tree), *changes_of(settings, live, tree)]


def make_topics(settings: Settings, release: ReleaseId, declared: Mapping[str, Any]) -> None:
    """Where a release publishes until it is live: set as the plain topics are declared, and empty."""
    plain = described.topics(described.publishes(declared))
    own = [replace(one, name=release.topic(one.name)) for one in topics_in(declared) if one.name in plain]
    topics.ensure(settings, own)
    broker = Broker(settings)
    there = broker.topics(one.name for one in own)
    parts = {name: range(facts.partitions) for name, facts in there.items()}
    first, end = broker.starts(parts), broker.ends(parts)
    for name in parts:
        if first[name] != end[name]:
            raise UsageError(
                f"Topic {name!r} holds records already, of something that was {release} before.",
                remedy="Delete the topic, then release again.",
            )


def _refuse_needless(job: str, live: Release, found: list[DeclaredChange]) -> None:
    if kind_of(found) is ChangeKind.NONE:
        raise UsageError(
            f"Nothing has changed since {live.title} was made.",
            remedy=f"Edit the job first; `weir release {job} --again` replays the same code.",
        )
    if kind_of(found) is ChangeKind.REVISION:
        raise UsageError(
            f"No row would differ: {found[0]} [{found[0].where}], and {len(found) - 1} more such changes.",
            remedy=f"`weir release {job} --revision` puts it in force at once; --again replays all the same.",
        )


def _nominate(store: ControlStore, manifest: Manifest, start: StartPosition, by: str, note: str) -> Release:
    """One transaction: a crash leaves either nothing or a candidate that the supervisor starts."""
    with store.transaction() as cursor:
        made = releases.add(
            cursor,
            manifest.release,
            **manifest.row(),
            by=by,
            state="replaying",
            reason=note,
            replay_from=start,
        )
        wanted.ask(cursor, manifest.release, "run", by, note or f"replay from {start.asked}")
    return made
