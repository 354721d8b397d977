"""Where a release is: carried by every commit, read by everyone who follows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> next offset


@dataclass(frozen=True)
class TableVersion:
    """A place in a table: every row that this release's table had at the version has been read."""

    release: str
    version: int

    def __str__(self) -> str:
        return f"{self.release} version {self.version}"


Place = Mapping[int, int] | TableVersion  # of one input: next offsets by partition, or a table's version
Places = Mapping[str, Place]  # by topic and table
Tables = Mapping[str, TableVersion]


@dataclass(frozen=True)
class Position:
    """The state of a release after `batch`: the place of every input, and the watermark in force in that batch.

    Topics and tables stand apart, as they do in its JSON: a driver that knows of topics alone reads what it knows.
    """

    release: str
    batch: int
    offsets: Offsets
    start: Offsets = field(default_factory=dict[str, dict[int, int]])  # where the batch began
    watermark_ms: int = 0
    newest_ms: int = 0  # the newest event time of any input so far: the release's clock
    revision: int = 0
    tables: Tables = field(default_factory=dict[str, TableVersion])
    tables_start: Tables = field(default_factory=dict[str, TableVersion])

    @property
    def places(self) -> dict[str, Place]:
        """Of all inputs, whatever their kind."""
        return {**self.offsets, **self.tables}

    @property
    def began(self) -> dict[str, Place]:
        return {**self.start, **self.tables_start}

    def to_json(self) -> str:
        """Without tables, to the byte what a driver of any age writes."""
        tables = {"tables": self.tables, "tables_start": self.tables_start}
        return json.dumps(
            {
                "release": self.release,
                "revision": self.revision,
                "batch": self.batch,
                "offsets": as_text(self.offsets),
                "start": as_text(self.start),
                "watermark_ms": self.watermark_ms,
                "newest_ms": self.newest_ms,
                **{name: as_text(places) for name, places in tables.items() if places},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Position:
        raw = json.loads(text)
        return cls(
            release=raw["release"],
            batch=raw["batch"],
            offsets=as_numbers(raw["offsets"]),
            start=as_numbers(raw["start"]),
            watermark_ms=raw["watermark_ms"],
            newest_ms=raw.get("newest_ms", 0),
            revision=raw.get("revision", 0),
            tables=tables_of(as_places(raw.get("tables", {}))),
            tables_start=tables_of(as_places(raw.get("tables_start", {}))),
        )


def offsets_of(places: Places) -> dict[str, Mapping[int, int]]:
    return {name: place for name, place in places.items() if not isinstance(place, TableVersion)}


def tables_of(places: Places) -> dict[str, TableVersion]:
    return {name: place for name, place in places.items() if isinstance(place, TableVersion)}


def as_text(places: Places) -> dict[str, dict[str, Any]]:
    """Places as JSON has them; offsets in the shape that Spark's Kafka source reads and writes."""
    return {
        name: asdict(place)
        if isinstance(place, TableVersion)
        else {str(partition): offset for partition, offset in sorted(place.items())}
        for name, place in sorted(places.items())
    }


def as_places(raw: Mapping[str, Mapping[str, Any]]) -> dict[str, Place]:
    """A partition is a number, so that no topic's place is taken for a table's."""
    return {
        name: TableVersion(**place) if "version" in place else {int(p): o for p, o in place.items()}
        for name, place in raw.items()
    }


def as_numbers(raw: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): o for p, o in parts.items()} for topic, parts in raw.items()}


def told(places: Places) -> str:
    """For people."""
    topics = [f"{t}[{p}]@{o}" for t, parts in sorted(offsets_of(places).items()) for p, o in sorted(parts.items())]
    return ", ".join([*topics, *(f"{name} at {place}" for name, place in sorted(tables_of(places).items()))])


def records_between(start: Offsets, end: Offsets) -> int:
    """How many offsets lie between two positions; a partition that start does not know begins at 0."""
    return sum(o - start.get(t, {}).get(p, 0) for t, parts in end.items() for p, o in parts.items())


def same_place(one: Places, other: Places) -> bool:
    """Whether two releases have read the same records of the inputs that both read: a new version may read another
    topic more. A partition that one of them has not seen yet stands at 0."""
    shared = one.keys() & other.keys()
    return bool(shared) and all(_read(one[name]) == _read(other[name]) for name in shared)


def _read(place: Place) -> Place:
    return place if isinstance(place, TableVersion) else {p: offset for p, offset in place.items() if offset}


def moved(place: Place, to: Place | None) -> Place:
    """`to`, with the partitions of `place` that it does not name; None stays."""
    if to is None:
        return place
    if isinstance(place, TableVersion) or isinstance(to, TableVersion):
        return to
    return {**place, **to}


def between(at: Places, wanted: Places, end: Places) -> dict[str, Place]:
    """`wanted`, but neither behind `at` nor past `end`; to the end where it is not known."""
    return {name: _between(at.get(name), wanted.get(name, place), place) for name, place in end.items()}


def _between(at: Place | None, wanted: Place, end: Place) -> Place:
    here: Place = {} if at is None else at
    if isinstance(here, TableVersion) or isinstance(wanted, TableVersion) or isinstance(end, TableVersion):
        inner = wanted if reached(end, wanted) else end
        return inner if at is None or reached(inner, at) else at
    return {p: min(max(wanted.get(p, last), here.get(p, 0)), last) for p, last in end.items()}


def reached(one: Place, other: Place) -> bool:
    """Whether `one` is nowhere behind `other`. Versions of two releases' tables say nothing of each other."""
    if isinstance(one, TableVersion):
        return isinstance(other, TableVersion) and one.release == other.release and one.version >= other.version
    return not isinstance(other, TableVersion) and all(one.get(p, 0) >= offset for p, offset in other.items())
