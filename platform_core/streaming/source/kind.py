"""What the platform asks of a kind of input, whatever that reads: plan a batch, bound it, read it, tell its lag.

A kind answers for all inputs of its kind that one release has. Of places it is given everybody's, and takes note of its
own; what it returns names its own alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from platform_core.control.gaps import Gap
from platform_core.control.position import Places, Position
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Left = dict[str, dict[int, int]]  # topic or table -> partition -> records; a table is one partition, 0


@dataclass(frozen=True)
class InputContext:
    """Who reads."""

    settings: Settings
    store: ControlStore
    job: StreamingJob
    release: ReleaseId


@dataclass(frozen=True)
class Query:
    """From where a query of the release reads."""

    begins: Places | None  # its first batch; None: at the earliest that there is
    next: Places  # the batch that it runs next
    step: bool  # it runs one planned batch, and ends
    over_gaps: bool  # records that are gone are not missed: somebody has said so


class Source(Protocol):
    """What one query reads."""

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        """What the transform sees of the input `name`, with an `event_time`. Observed as `input_<name>`: how many
        records and of which times; `delay` is how far the job's watermark stays behind its clock."""
        ...

    def lookups(self) -> DataFrame | None:
        """Every record of the lookup topics, read ahead as far as there is; None without lookups."""
        ...


class InputKind(Protocol):
    @property
    def origin(self) -> Places:
        """Where each of its inputs begins before anything was read."""
        ...

    @property
    def paced(self) -> Collection[str]:
        """What of it advances by record time, with all other inputs; the rest is read ahead as far as there is."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether the next batch has to be a step: its records come from elsewhere than the release's own query reads.
        What `reachable` found last."""
        ...

    def prove(self) -> None:
        """Raises PositionError when what is read is another than the release was made for: no place means the same."""
        ...

    def ends(self, of: Places) -> Places:
        """Where all that can be read by now ends, of the inputs that are named."""
        ...

    def reachable(self, at: Places, goal: Places) -> Places:
        """`goal`, or how far towards it the next batch may go. Raises PositionError when what it needs is gone."""
        ...

    def lost(self, at: Places) -> list[Gap]:
        """Records after `at` that are gone: a live release may be told to go on without them."""
        ...

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]:
        """Tells, between two places, the place before the first record of a moment or a later one. What is dated later
        than `now_ms` is no clock."""
        ...

    def left(self, at: Places, end: Places) -> Left:
        """How many records lie between two places; none where `at` is ahead."""
        ...

    def source(self, spark: SparkSession, query: Query) -> Source: ...

    def behind(self, spark: SparkSession, position: Position, last_ms: int) -> int:
        """How many events of a batch are not after a moment, by reading it again."""
        ...

    def close(self) -> None:
        """Closes the clients that `moments` has opened; it opens them again when it has to."""
        ...


def largest_batch(settings: Settings, job: StreamingJob) -> int:
    """How many events a batch can have."""
    bounds = settings.batches
    return bounds.max_records if job.state == "disk" else min(bounds.max_records, bounds.max_in_memory)
