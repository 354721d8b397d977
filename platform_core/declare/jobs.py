"""Jobs: inputs, a pure transform, an output. Running, retrying and swapping them is the platform's business."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from platform_core.declare.durations import duration
from platform_core.declare.expected import check_expected
from platform_core.declare.inputs import Input, Lookup, OfTopic, Stream
from platform_core.declare.publishing import Publish, check_published
from platform_core.declare.tables import Table
from platform_core.declare.topics import Topic
from platform_core.declare.wanted import are, is_a, is_callable, is_one_of
from platform_core.errors import DeclarationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[..., "DataFrame"]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, kw_only=True)
class StreamingJob:
    """What its author writes. `transform` takes one DataFrame for each Stream, by the input's name.

    `emits="updates"` writes a row whenever it has changed; `"final"` once, when no event can change it any more.
    """

    name: str
    inputs: Mapping[str, Input]
    transform: Transform
    output: Table
    publish: Publish | tuple[Publish, ...] | None = None
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
        if not self.transformed:
            raise DeclarationError(
                f"{here}.inputs: the transform takes none of them.", remedy="Give it at least one Stream."
            )
        duration(self.updates_every, f"{here}.updates_every")
        if not 0 < self.reject_limit <= 1:
            raise DeclarationError(
                f"{here}.reject_limit: {self.reject_limit}.", remedy="Give a share between 0 and 1, as in 0.5."
            )
        _check_parameters(here, self.transform, set(self.transformed))
        if self.state == "memory" and any(part.late_after is None for part in self.transformed.values()):
            raise DeclarationError(
                f"{here}.state: an input without lateness is kept for ever, and memory is not.",
                remedy="Give every Stream a lateness, or keep the state on disk.",
            )
        check_published(here, self.publishes, self.output)
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
            is_a(part, Input, f"{here}.inputs[{name!r}]", "Write Stream(...) or Lookup(...) of a topic.")
        _check_apart(here, self.inputs.values())
        is_a(self.output, Table, f"{here}.output", "Write Table(name=..., schema=...).")
        if not isinstance(self.publish, (Publish, type(None))):
            are(self.publish, Publish, f"{here}.publish", "Publish(TOPIC, key=Text('ticker')), or a tuple of them")
        is_callable(self.transform, f"{here}.transform")
        is_a(self.reject_limit, (float, int), f"{here}.reject_limit", "Give a share between 0 and 1, as in 0.5.")
        is_one_of(self.emits, ("updates", "final", None), f"{here}.emits")
        is_one_of(self.state, ("disk", "memory"), f"{here}.state")

    @property
    def transformed(self) -> dict[str, Input]:
        """Those that the transform takes, by its parameters."""
        return {name: part for name, part in self.inputs.items() if part.transformed}

    @property
    def streams(self) -> dict[str, Stream]:
        return {name: part for name, part in self.inputs.items() if isinstance(part, Stream)}

    @property
    def lookups(self) -> dict[str, Lookup]:
        return {name: part for name, part in self.inputs.items() if isinstance(part, Lookup)}

    @property
    def of_topics(self) -> dict[str, OfTopic]:
        return {name: part for name, part in self.inputs.items() if isinstance(part, OfTopic)}

    @property
    def publishes(self) -> tuple[Publish, ...]:
        """What it writes to Kafka, a topic each."""
        if self.publish is None:
            return ()
        return (self.publish,) if isinstance(self.publish, Publish) else tuple(self.publish)

    @property
    def lands(self) -> bool:
        """Whether it keeps a topic's records as they are."""
        return any(part.verbatim for part in self.streams.values())

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The input topics, each once."""
        return tuple({part.topic.name: part.topic for part in self.of_topics.values()}.values())

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


def _check_apart(here: str, inputs: Collection[Input]) -> None:
    """A position names the places of topics and tables alike."""
    topics = {part.reads for part in inputs if isinstance(part, OfTopic)}
    both = sorted(topics & {part.reads for part in inputs if not isinstance(part, OfTopic)})
    if both:
        raise DeclarationError(
            f"{here}.inputs: {both[0]!r} is a topic and a table.", remedy="Read one of them; or rename the table."
        )


def _check_lookups(here: str, lookups: Mapping[str, Lookup], output: Table) -> None:
    known = {column.name: column.sql for column in output.columns}
    taken = {name for lookup in lookups.values() for name in lookup.fills}
    for label, lookup in lookups.items():
        for where, name in (("on", lookup.on), ("at", lookup.at)):
            came = "a lookup's column" if name in taken else known.get(name, "no such column")
            if name in taken or name not in known or (where == "at" and came != "timestamp"):
                raise DeclarationError(
                    f"{here}.inputs[{label!r}].{where}: {name!r} is {came} of table {output.name!r}.",
                    remedy=f"Name a {'TIMESTAMP ' if where == 'at' else ''}column that the transform gives the table.",
                )
        for name in (*lookup.fills, *lookup.otherwise):
            if name not in known:
                raise DeclarationError(
                    f"{here}.inputs[{label!r}]: {name!r} is not a column of table {output.name!r}.",
                    remedy="Add it to the table's schema, or do not take it.",
                )
        if lookup.dated is not None and (known[lookup.dated] != "timestamp" or lookup.dated in lookup.otherwise):
            raise DeclarationError(
                f"{here}.inputs[{label!r}].dated: {lookup.dated!r} is {known[lookup.dated]}, or has a value otherwise.",
                remedy="Name a TIMESTAMP column, which is null where no record was taken.",
            )
