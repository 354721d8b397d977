"""`weir plan JOB`: the working tree against the live release, before anything happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from platform_core.archived.protocol import PROTOCOL
from platform_core.control import clients, releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.declare import described
from platform_core.errors import ServiceUnavailable
from platform_core.release import archive, topics
from platform_core.release.plan.changes import ChangeKind, DeclaredChange, PlannedVersion, changes, kind_of
from platform_core.release.plan.estimate import Room, Time, room_of, time_of
from platform_core.release.plan.reach import Code
from platform_core.release.plan.reading import Reading, reading_of
from platform_core.release.plan.tree import TableReader, Tree, tree_of
from platform_core.settings import Settings

_NEW = DeclaredChange(ChangeKind.REPLAY, "no release of the job is live: its first one reads everything", "")


@dataclass(frozen=True)
class Touched:
    """Who reads what the job writes."""

    table: str
    topics: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    downstream: tuple[TableReader, ...] = ()


@dataclass(frozen=True)
class Plan:
    job: str
    live: str | None  # the release that the tree is compared with, and its revision
    kind: ChangeKind
    changes: tuple[DeclaredChange, ...] = ()
    reading: Reading | None = None  # what follows is told of a replay alone
    time: Time | None = None
    room: Room | None = None
    touched: Touched | None = None
    notes: tuple[str, ...] = ()


def plan_of(job: str, settings: Settings, store: ControlStore, tree: Tree | None = None) -> Plan:
    live = releases.live(store, job)
    tree = tree or tree_of(settings, job)
    found = [_NEW] if live is None else changes_of(settings, live, tree)
    plan = Plan(job, live.title if live else None, kind_of(found), tuple(found))
    try:
        return _weighed(settings, store, live, tree, plan)
    except ServiceUnavailable as error:
        return replace(plan, notes=(f"What the broker holds is not known: {error.what}",))


def changes_of(settings: Settings, live: Release, tree: Tree) -> list[DeclaredChange]:
    """Between the archive that the live release runs from and the working tree."""
    frozen = archive.verify(settings, live.id, live.revision)
    code = Code(archive.code_of(settings, frozen))
    old = PlannedVersion(code, frozen.declared, frozen.protocol, frozen.rows_version)
    return changes(old, PlannedVersion(Code(settings.root), tree.declared, PROTOCOL, tree.rows_version))


def inputs_of(declared: Mapping[str, Any]) -> list[str]:
    return described.topics(described.inputs(declared).values())


def readings_of(declared: Mapping[str, Any]) -> list[list[str]]:
    """The topics of each of the job's sources: those of events, those of lookups."""
    kinds = described.transformed(declared), described.lookups(declared)
    return [described.topics(parts.values()) for parts in kinds]


def _weighed(settings: Settings, store: ControlStore, live: Release | None, tree: Tree, plan: Plan) -> Plan:
    """With the topics as they are now, and what a replay costs where there must be one."""
    found = (*(made_again(settings, live, tree) if live else ()), *plan.changes)
    plan = replace(plan, kind=kind_of(found), changes=found)
    if plan.kind is not ChangeKind.REPLAY:
        return plan
    plan = replace(plan, reading=reading_of(settings, store, readings_of(tree.declared)), touched=_touched(store, tree))
    if live is None or plan.reading is None:
        return plan
    needed = time_of(store, live.id, plan.reading.records)
    room = room_of(settings, live.id, list(described.lookups(live.manifest["declared"])))
    return replace(plan, time=needed, room=room, notes=tuple(notes(plan.reading, needed.hours)))


def made_again(settings: Settings, live: Release, tree: Tree) -> Iterator[DeclaredChange]:
    """A topic that was deleted and created again has the same name and other records."""
    read = {name: known for name, known in live.topics.items() if name in inputs_of(tree.declared)}
    there = topics.ids(settings, read)
    for name, known in read.items():
        if there.get(name) != known:
            how = "was deleted and created again" if name in there else "is gone from the broker"
            yield DeclaredChange(ChangeKind.REPLAY, f"topic {name!r} {how} since {live.id} was made", f"topic {name}")


def _touched(store: ControlStore, tree: Tree) -> Touched:
    table, publishes = tree.declared["output"]["name"], described.publishes(tree.declared)
    bound = tuple(f"{one.name} (bound to {one.release or 'live'})" for one in clients.of_table(store, table))
    return Touched(table, tuple(described.topics(publishes)), bound, tree.downstream)


def notes(reading: Reading, hours: float | None) -> Iterator[str]:
    """What may keep a replay from the earliest from being one.

    It reads a record of the range's end last, and that one is kept for as long as any: a replay that takes longer than
    records are kept loses some.
    """
    for one in reading.topics:
        if hours is not None and one.kept_hours is not None and hours > one.kept_hours:
            yield f"topic {one.topic!r} keeps records for {one.kept_hours:.3g} hours: the replay would lose the race"
        if one.landed and one.from_table:
            yield f"topic {one.topic!r}: the oldest {one.from_table:,} records come from the raw table of {one.landed}"
        if one.gone:
            yield (
                f"topic {one.topic!r} has lost its first {one.gone:,} records to retention: a replay from the earliest "
                "cannot have what they led to"
            )
