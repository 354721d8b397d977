"""All inputs of a release, of whatever kinds: each is asked for its own, and the answers are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from platform_core.control.gaps import Gap
from platform_core.control.position import Places, Position, moved
from platform_core.declare.inputs import Input, OfTopic
from platform_core.errors import UsageError
from platform_core.streaming.source.kafka import KafkaTopics
from platform_core.streaming.source.kind import InputContext, InputKind, Left, Query, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS: dict[type[Input], Callable[[InputContext], InputKind]] = {OfTopic: KafkaTopics}  # declared as, read by


def inputs_of(reader: InputContext) -> ReleaseInputs:
    declared = reader.job.inputs
    unknown = [name for name, part in declared.items() if not isinstance(part, tuple(KINDS))]
    if unknown:
        raise UsageError(
            f"job {reader.job.name!r}.inputs[{unknown[0]!r}]: nothing here reads a "
            f"{type(declared[unknown[0]]).__name__}.",
            remedy="A newer platform declared it; run it with that one.",
        )
    found = [kind for kind in KINDS if any(isinstance(part, kind) for part in declared.values())]
    return ReleaseInputs(reader, [KINDS[kind](reader) for kind in found])


class ReleaseInputs:
    def __init__(self, reader: InputContext, kinds: Sequence[InputKind]) -> None:
        self._job, self._kinds = reader.job, kinds

    @property
    def origin(self) -> Places:
        return {name: place for kind in self._kinds for name, place in kind.origin.items()}

    @property
    def elsewhere(self) -> bool:
        return any(kind.elsewhere for kind in self._kinds)

    def prove(self) -> None:
        for kind in self._kinds:
            kind.prove()

    def paced(self, places: Places) -> Places:
        """Of those inputs that advance by record time."""
        names = {name for kind in self._kinds for name in kind.paced}
        return {name: place for name, place in places.items() if name in names}

    def ends(self, of: Places) -> Places:
        return _joined(kind.ends(of) for kind in self._kinds)

    def ends_but(self, known: Places) -> Places:
        """Of the inputs that are not known there."""
        return self.ends({name: place for name, place in self.origin.items() if name not in known})

    def reachable(self, at: Places, goal: Places) -> Places:
        return _joined(kind.reachable(at, goal) for kind in self._kinds)

    def lost(self, at: Places) -> list[Gap]:
        return [gap for kind in self._kinds for gap in kind.lost(at)]

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]:
        each = [kind.moments(at, goal, now_ms) for kind in self._kinds]
        return lambda at_ms: _joined(since(at_ms) for since in each)

    def left(self, at: Places, end: Places) -> Left:
        return {name: parts for kind in self._kinds for name, parts in kind.left(at, end).items()}

    def lag(self, at: Places, ends: Places) -> Left:
        """With nothing left where no end is known."""
        return self.left(at, {name: moved(place, ends.get(name)) for name, place in at.items()})

    def records(self, at: Places, end: Places) -> int:
        return sum(count for parts in self.left(at, end).values() for count in parts.values())

    def source(self, spark: SparkSession, query: Query) -> Source:
        each = [(kind, kind.source(spark, query)) for kind in self._kinds]
        reads = {name: part.reads for name, part in self._job.inputs.items()}
        return _Joined({name: source for kind, source in each for name in reads if reads[name] in kind.origin})

    def behind(self, spark: SparkSession, position: Position, last_ms: int) -> int:
        return sum(kind.behind(spark, position, last_ms) for kind in self._kinds)

    def close(self) -> None:
        for kind in self._kinds:
            kind.close()


class _Joined:
    """The sources of several kinds, by the input that each reads."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self._sources = sources

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        return self._sources[name].rows(name, delay)

    def lookups(self) -> DataFrame | None:
        """Those of topics: no other kind has any."""
        found = [source.lookups() for source in dict.fromkeys(self._sources.values())]
        return next((frame for frame in found if frame is not None), None)


def _joined(answers: Iterable[Places]) -> Places:
    return {name: place for answer in answers for name, place in answer.items()}
