"""What a job reads: inputs, each of a kind of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from platform_core.declare.durations import duration
from platform_core.declare.topics import Format, Topic, is_topic
from platform_core.declare.wanted import are, is_one_of
from platform_core.errors import DeclarationError


@dataclass(frozen=True)
class RowRule:
    """A condition that each record of an input keeps; one for which it is false or null goes to the job's rejects."""

    name: str
    holds: str  # SQL over the input's columns


class Input(ABC):
    """What a job reads of one topic or table. `platform_core/streaming/source/` says of each kind how it is read."""

    transformed: ClassVar[bool] = True  # the transform takes its rows; of another, the platform does

    @property
    @abstractmethod
    def reads(self) -> str:
        """The topic or table, by which positions name its place."""

    @property
    def late_after(self) -> timedelta | None:
        """None: it has no clock, and nothing of it is late."""
        return None

    @property
    def watermarked(self) -> bool:
        """Whether the watermark, and not the record itself, says what is late."""
        return False


@dataclass(frozen=True)
class OfTopic(Input):
    """An input of Kafka records."""

    verbatim: ClassVar[bool] = False  # its records are taken as bytes and coordinates

    topic: Topic

    @property
    def reads(self) -> str:
        return self.topic.name

    @property
    def row_rules(self) -> tuple[RowRule, ...]:
        return ()

    @property
    def skips_nulls(self) -> bool:
        """Whether records with a null value are passed over."""
        return False

    @property
    def refused_after(self) -> str | None:
        """How late a record may be that is not refused; None: none is refused for being late."""
        return None

    @property
    @abstractmethod
    def furthest(self) -> str:
        """How far ahead an event time may be."""

    @property
    def far_future(self) -> timedelta:
        return duration(self.furthest, "future")


@dataclass(frozen=True)
class Stream(OfTopic):
    """An input whose every record is an event.

    Where event time is a field, a record is late when its timestamp is more than `lateness` after its event time:
    decided record by record, the same in every replay. Where the record's timestamp is the event time, the
    watermark decides: a record behind it no longer reaches windows that have closed. Without a lateness there is no
    clock, and nothing is late.

    A null value is rejected; with `nulls="skip"` the stream has no such record, as one of a table's changes read for
    what was inserted and updated alone. Where the topic says that its null values are tombstones, the transform gets
    them otherwise, with null in every column of the value.

    Late records are counted and dropped. With `late="rejected"`, where event time is a field, they go to the job's
    rejects instead, with the reason "more than 3 hours late", and count as rejects.
    """

    lateness: str | None = None
    future: str = "1 day"  # an event time further ahead than this is refused; it would close every window
    rules: tuple[RowRule, ...] = ()
    nulls: Literal["reject", "skip"] = "reject"
    late: Literal["dropped", "rejected"] = "dropped"

    def __post_init__(self) -> None:
        is_topic(self.topic, f"{type(self).__name__}({self.topic!r})")
        here = f"Stream({self.topic.name!r})"
        are(self.rules, RowRule, f"{here}.rules", "rules=(RowRule('positive', 'price > 0'),)")
        if self.lateness is not None:
            duration(self.lateness, f"{here}.lateness")
        duration(self.future, f"{here}.future")
        is_one_of(self.late, ("dropped", "rejected"), f"{here}.late")
        if self.late == "rejected" and (self.lateness is None or self.topic.event_time is None):
            raise DeclarationError(
                f"{here}.late: no record of it says by itself that it is late.",
                remedy="Give it a lateness, and its topic a field as `event_time`; or leave `late` out.",
            )
        is_one_of(self.nulls, ("reject", "skip"), f"{here}.nulls")

    @property
    def skips_nulls(self) -> bool:
        return self.nulls == "skip"

    @property
    def late_after(self) -> timedelta | None:
        return None if self.lateness is None else duration(self.lateness, "lateness")

    @property
    def watermarked(self) -> bool:
        return self.lateness is not None and self.topic.event_time is None

    @property
    def row_rules(self) -> tuple[RowRule, ...]:
        return self.rules

    @property
    def refused_after(self) -> str | None:
        return self.lateness if self.late == "rejected" else None

    @property
    def furthest(self) -> str:
        return self.future


@dataclass(frozen=True)
class Raw(Stream):
    """An input whose every record is taken as it is: bytes and coordinates. None is parsed, refused or late.

    The transform gets `key` and `value` as bytes, whatever the topic says of them, and `record`.
    """

    verbatim: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lateness is not None or self.rules or self.skips_nulls:
            raise DeclarationError(
                f"Raw({self.topic.name!r}): lateness, rules and nulls need what is in a record.",
                remedy="Leave them out.",
            )
        whole = {"format": Format.BYTES, "value": "value BINARY", "event_time": None, "tombstones": False}
        object.__setattr__(
            self, "topic", replace(self.topic, **whole, personal=("value",) if self.topic.personal else ())
        )


@dataclass(frozen=True)
class Lookup(OfTopic):
    """A keyed topic read as a table, joined to each output row as of the row's own time.

    The newest record of the key not later than `at` is taken, whatever has come since; where there is none, or a
    tombstone, `otherwise` stands in its place. An event waits at most `wait` of event time for a record on its way.

    With `dated` the row says since when what it took had been so. With `required` a row for which there is none is not
    written: Kafka Streams' inner join, where the other is its left one.
    """

    transformed: ClassVar[bool] = False

    on: str  # the transform's column that holds the topic's key
    at: str  # the transform's TIMESTAMP column that says as of when
    takes: tuple[str, ...]
    otherwise: Mapping[str, Any] = field(default_factory=dict)
    wait: str = "0 seconds"
    future: str = "1 day"  # a record dated further ahead than this is refused; it would end every waiting
    required: bool = False
    dated: str | None = None  # the table's TIMESTAMP column that gets the time of the record taken

    def __post_init__(self) -> None:
        is_topic(self.topic, f"Lookup({self.topic!r})")
        here = f"Lookup({self.topic.name!r})"
        are(self.takes, str, f"{here}.takes", "takes=('name',)")
        duration(self.wait, f"{here}.wait")
        duration(self.future, f"{here}.future")
        if self.required and (self.otherwise or not self.takes):
            raise DeclarationError(
                f"{here}.required: no row is written where there is no record.",
                remedy="Leave `otherwise` out, and take a column at least.",
            )
        if self.topic.key is None:
            raise DeclarationError(f"{here}.topic: it has no key.", remedy="Declare the topic's `key`.")
        unknown = sorted(set(self.takes) - {column.name for column in self.topic.columns})
        if unknown:
            raise DeclarationError(
                f"{here}.takes: {unknown[0]!r} is not a column of the topic.", remedy="Take columns of its value."
            )
        object.__setattr__(self, "otherwise", MappingProxyType(dict(self.otherwise)))

    @property
    def fills(self) -> tuple[str, ...]:
        """The table's columns that the transform does not give."""
        return self.takes if self.dated is None else (*self.takes, self.dated)

    @property
    def waits(self) -> timedelta:
        return duration(self.wait, "wait")

    @property
    def furthest(self) -> str:
        return self.future
