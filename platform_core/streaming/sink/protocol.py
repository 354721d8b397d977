"""What a batch is written to: one interface for batches, for a driver's start, and for the end of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from platform_core.broker import Broker
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint


@dataclass(frozen=True)
class Remains:
    """One kind of what a release leaves behind."""

    what: str
    exists: Callable[[], bool]
    remove: Callable[[], object]

    @classmethod
    def of(cls, what: str, place: Place) -> Remains:
        return cls(f"{what} {place}", place.exists, place.remove)


@dataclass(frozen=True)
class Retiring:
    """A release that is given up: what is known of it without its code."""

    settings: Settings
    broker: Broker
    release: ReleaseId
    declared: Mapping[str, Any]


class Sink(Protocol):
    def committed(self) -> int:
        """The newest batch that it is known to have, -1 without."""
        ...

    def prove(self, checkpoint: Checkpoint) -> None:
        """At a driver's start: raises where it does not fit what the checkpoint says."""
        ...

    def commit(self, batch: Batch) -> Batch:
        """Writes the batch unless it has it; returns it with what it adds for the sinks behind it."""
        ...

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:
        """What goes when the release is retired."""
        ...
