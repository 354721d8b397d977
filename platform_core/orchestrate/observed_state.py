"""What was seen of a platform at one moment, as values; what follows from it is decided elsewhere, purely.

All ages are seconds by the control store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from platform_core.broker import TopicFacts
from platform_core.control.facts import BatchFacts

Wanted = Literal["run", "stop", "pause"]


@dataclass(frozen=True)
class SeenBatch:
    """A batch as the control store remembers it."""

    age: float
    facts: BatchFacts


@dataclass(frozen=True)
class ObservedDriver:
    """What a release's driver last said of itself, and whether its lease is alive."""

    state: str
    lease_alive: bool
    failures: int = 0
    restarts: int = 0
    given_up: bool = False
    reason: str = ""
    pid: int | None = None
    host: str = ""
    age: float = 0.0  # in this state


@dataclass(frozen=True)
class ObservedRelease:
    """The live release of a job: what is wanted of it, what it does, how far it is."""

    name: str
    wanted: Wanted | None = None
    wanted_by: str = ""
    wanted_age: float = 0.0
    driver: ObservedDriver | None = None
    batches: tuple[SeenBatch, ...] = ()  # oldest first, of the last minutes
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, dict[int, int]])
    watermark_ms: int = 0

    @property
    def position(self) -> int:
        """One number that grows exactly when the release moves forward."""
        return sum(offset for parts in self.offsets.values() for offset in parts.values())

    @property
    def runs(self) -> bool:
        return self.driver is not None and self.driver.lease_alive


@dataclass(frozen=True)
class ObservedTopic:
    """A topic as the broker has it."""

    facts: TopicFacts
    begin: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def records(self) -> int:
        """Offsets between the oldest and the newest; markers of transactions count too."""
        return self.written - sum(self.begin.values())

    @property
    def written(self) -> int:
        """One number that grows with every record."""
        return sum(self.end.values())


@dataclass(frozen=True)
class ObservedBroker:
    """The topics it has, or why it could not be asked."""

    topics: Mapping[str, ObservedTopic] = field(default_factory=dict[str, ObservedTopic])
    trouble: str = ""


@dataclass(frozen=True)
class ObservedSupervisor:
    """Seconds since its last heartbeat; None: never heard of, or the control store could not be asked."""

    silent_for: float | None = None
    trouble: str = ""


def behind(release: ObservedRelease, topics: tuple[str, ...], broker: ObservedBroker) -> int | None:
    """Records that the broker has and the release has not taken; unlike the driver's own figure it grows when the
    driver is dead. None: the broker does not say."""
    seen = [(name, broker.topics[name]) for name in topics if name in broker.topics]
    if broker.trouble or not seen:
        return None
    return sum(
        max(0, end - max(release.offsets.get(name, {}).get(part, 0), topic.begin.get(part, 0)))
        for name, topic in seen
        for part, end in topic.end.items()
    )
