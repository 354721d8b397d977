"""Jobs: inputs, a pure transform, an output. Running, retrying and swapping them is the platform's business."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from platform_core.declare.durations import duration
from platform_core.declare.expected import check_expected
from platform_core.declare.publishing import Publish, check_published
from platform_core.declare.tables import Table
from platform_core.declare.topics import Format, Topic, is_topic
from platform_core.declare.wanted import are, is_a, is_callable, is_one_of
from platform_core.errors import DeclarationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[..., "DataFrame"]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True)
class RowRule:
    """A condition that each record of an input keeps; one for which it is false or null goes to the job's rejects."""

    name: str
    holds: str  # SQL over the input's columns


@dataclass(frozen=True)
class Stream:
    """An input whose every record is an event.

    Where event time is a field, a record is late when its timestamp is more than `lateness` after its event time:
    decided record by record, the same in every replay. Where the record's timestamp is the event time, the
    watermark decides: a record behind it no longer reaches windows that have closed. Without a lateness there is no
    clock, and nothing is late.
    """

    topic: Topic
    lateness: str | None = None
    future: str = "1 day"  # an event time further ahead than this is refused; it would close every window
    rules: tuple[RowRule, ...] = ()

    def __post_init__(self) -> None:
        is_topic(self.topic, f"{type(self).__name__}({self.topic!r})")
        here = f"Stream({self.topic.name!r})"
        are(self.rules, RowRule, f"{here}.rules", "rules=(RowRule('positive', 'price > 0'),)")
        if self.lateness is not None:
            duration(self.lateness, f"{here}.lateness")
        duration(self.future, f"{here}.future")

    @property
    def late_after(self) -> timedelta | None:
        return None if self.lateness is None else duration(self.lateness, "lateness")

    @property
    def watermarked(self) -> bool:
        """Whether the watermark, and not the record itself, says what is late."""
        return self.lateness is not None and self.topic.event_time is None

    @property
    def far_future(self) -> timedelta:
        return duration(self.future, "future")


@dataclass(frozen=True)
class Raw(Stream):
    """An input whose every record is taken as it is: bytes and coordinates. None is parsed, refused or late.

    The transform gets `key` and `value` as bytes, whatever the topic says of them, and `record`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lateness is not None or self.rules:
            raise DeclarationError(
                f"Raw({self.topic.name!r}): lateness and rules need what is in a record.", remedy="Leave them out."
            )
        whole = {"format": Format.BYTES, "value": "value BINARY", "event_time": None, "tombstones": False}
        object.__setattr__(
            self, "topic", replace(self.topic, **whole, personal=("value",) if self.topic.personal else ())
        )


@dataclass(frozen=True)
class Lookup:
    """A keyed topic read as a table, joined to each output row as of the row's own time.

    The newest record of the key not later than `at` is taken, whatever has come since; where there is none, or a
    tombstone, `otherwise` stands in its place. An event waits at most `wait` of event time for a record on its way.
    """

    topic: Topic
    on: str  # the transform's column that holds the topic's key
    at: str  # the transform's TIMESTAMP column that says as of when
    takes: tuple[str, ...]
    otherwise: Mapping[str, Any] = field(default_factory=dict)
    wait: str = "0 seconds"
    future: str = "1 day"  # a record dated further ahead than this is refused; it would end every waiting

    def __post_init__(self) -> None:
        is_topic(self.topic, f"Lookup({self.topic!r})")
        here = f"Lookup({self.topic.name!r})"
        are(self.takes, str, f"{here}.takes", "takes=('name',)")
        duration(self.wait, f"{here}.wait")
        duration(self.future, f"{here}.future")
        if self.topic.key is None:
            raise DeclarationError(f"{here}.topic: it has no key.", remedy="Declare the topic's `key`.")
        unknown = sorted(set(self.takes) - {column.name for column in self.topic.columns})
        if unknown:
            raise DeclarationError(
                f"{here}.takes: {unknown[0]!r} is not a column of the topic.", remedy="Take columns of its value."
            )
        object.__setattr__(self, "otherwise", MappingProxyType(dict(self.otherwise)))

    @property
    def waits(self) -> timedelta:
        return duration(self.wait, "wait")

    @property
    def far_future(self) -> timedelta:
        return duration(self.future, "future")


Input = Stream | Lookup


@dataclass(frozen=True, kw_only=True)
class StreamingJob:
    """What its author writes. `transform` takes one DataFrame for each Stream, by the input's name.

    `emits="updates"` writes a row whenever it has changed; `"final"` once, when no event can change it any more.
    """

    name: str
    inputs: Mapping[str, Input]
    transform: Transform
    output: Table
    publish: Publish | None = None
    updates_every: str = "1 second"
    emits: Literal["updates", "final"] | None = None  # None: updates for a keyed table, final for an appended one
    state: Literal["disk", "memory"] = (
        "disk"  # memory: faster, for joins of seconds, whose lateness bounds what is kept
    )
    reject_limit: float = 0.5  # the share of rejects, of the newest thousand records, that stops the job
    expect: Mapping[str, str] = field(default_factory=dict)  # column -> how it may differ from the live release's
    settings: Mapping[str, str] = field(default_factory=dict)
    owner: str = "team:data"
    description: str = ""

    def __post_init__(self) -> None:
        here = f"job {self.name!r}"
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(f"{here}.name: not a job's name.", remedy="Use lower case letters, digits and '_'.")
        self._check_kinds(here)
        if not self.streams:
            raise DeclarationError(f"{here}.inputs: no Stream among them.", remedy="Give it at least one Stream.")
        duration(self.updates_every, f"{here}.updates_every")
        if not 0 < self.reject_limit <= 1:
            raise DeclarationError(
                f"{here}.reject_limit: {self.reject_limit}.", remedy="Give a share between 0 and 1, as in 0.5."
            )
        _check_parameters(here, self.transform, set(self.streams))
        if self.state == "memory" and any(part.late_after is None for part in self.streams.values()):
            raise DeclarationError(
                f"{here}.state: an input without lateness is kept for ever, and memory is not.",
                remedy="Give every Stream a lateness, or keep the state on disk.",
            )
        check_published(here, self.publish, self.output)
        _check_lookups(here, self.lookups, self.output)
        check_expected(here, self.expect, self.output)
        for name in ("inputs", "settings", "expect"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def _check_kinds(self, here: str) -> None:
        """Of what is written here alone; what each of it holds, it has checked itself."""
        is_a(
            self.inputs, Mapping, f"{here}.inputs", "Write {'trades': Stream(STOCKS)}: names as the transform has them."
        )
        for name, part in self.inputs.items():
            is_a(part, (Stream, Lookup), f"{here}.inputs[{name!r}]", "Write Stream(...) or Lookup(...) of a topic.")
        is_a(self.output, Table, f"{here}.output", "Write Table(name=..., schema=...).")
        is_a(self.publish, (Publish, type(None)), f"{here}.publish", "Write Publish(TOPIC, key=Text('ticker')).")
        is_callable(self.transform, f"{here}.transform")
        is_a(self.reject_limit, (float, int), f"{here}.reject_limit", "Give a share between 0 and 1, as in 0.5.")
        is_one_of(self.emits, ("updates", "final", None), f"{here}.emits")
        is_one_of(self.state, ("disk", "memory"), f"{here}.state")

    @property
    def streams(self) -> dict[str, Stream]:
        return {name: part for name, part in self.inputs.items() if isinstance(part, Stream)}

    @property
    def lookups(self) -> dict[str, Lookup]:
        return {name: part for name, part in self.inputs.items() if isinstance(part, Lookup)}

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The input topics, each once."""
        return tuple({part.topic.name: part.topic for part in self.inputs.values()}.values())

    @property
    def output_mode(self) -> Literal["update", "append"]:
        final = self.emits == "final" or (self.emits is None and not self.output.keyed)
        return "append" if final else "update"


def _check_parameters(here: str, transform: Transform, streams: set[str]) -> None:
    parameters = inspect.signature(transform).parameters.values()
    wants = {one.name for one in parameters}
    needs = {one.name for one in parameters if one.default is inspect.Parameter.empty}
    if not needs <= streams <= wants:
        raise DeclarationError(
            f"{here}.transform: it takes {sorted(wants)}, the Stream inputs are {sorted(streams)}.",
            remedy="Name its parameters after the inputs.",
        )


def _check_lookups(here: str, lookups: Mapping[str, Lookup], output: Table) -> None:
    known = {column.name: column.sql for column in output.columns}
    taken = {name for lookup in lookups.values() for name in lookup.takes}
    for label, lookup in lookups.items():
        for where, name in (("on", lookup.on), ("at", lookup.at)):
            came = "a lookup's column" if name in taken else known.get(name, "no such column")
            if name in taken or name not in known or (where == "at" and came != "timestamp"):
                raise DeclarationError(
                    f"{here}.inputs[{label!r}].{where}: {name!r} is {came} of table {output.name!r}.",
                    remedy=f"Name a {'TIMESTAMP ' if where == 'at' else ''}column that the transform gives the table.",
                )
        for name in (*lookup.takes, *lookup.otherwise):
            if name not in known:
                raise DeclarationError(
                    f"{here}.inputs[{label!r}]: {name!r} is not a column of table {output.name!r}.",
                    remedy="Add it to the table's schema, or do not take it.",
                )
