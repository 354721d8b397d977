"""Refused records: a Delta table with coordinates, bytes and reason, and the limit that stops a job."""

from __future__ import annotations

import base64
import datetime as dt
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from platform_core.declare.schemas import columns
from platform_core.errors import RejectLimitExceeded
from platform_core.storage import Place
from platform_core.streaming.checkpoint.files import Checkpoint, refuse_ahead
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import arrow_schema, delta_schema

if TYPE_CHECKING:
    from platform_core.streaming.batch.value import Batch
    from platform_core.streaming.sink.protocol import Remains, Retiring

SCHEMA = (
    "topic STRING, partition INT, offset BIGINT, record_timestamp TIMESTAMP, key BINARY, value BINARY, "
    "reason STRING, release STRING, batch BIGINT, rejected_at TIMESTAMP"
)
_WINDOW = 1000  # records over which the share of rejects is taken
_FEW = 20  # rejects below this number never stop a job: one bad record of two is no flood


@dataclass(frozen=True)
class Reject:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    size: int = 0

    @classmethod
    def from_metric(cls, raw: dict[str, Any]) -> Reject:
        return cls(
            raw["topic"],
            raw["partition"],
            raw["offset"],
            raw["timestamp_ms"],
            _bytes(raw.get("key")),
            _bytes(raw.get("value")),
            raw["reason"],
            raw.get("size") or 0,
        )

    @property
    def truncated(self) -> bool:
        return self.value is not None and len(self.value) < self.size


class Fetcher(Protocol):
    """Reads whole records again by coordinates: those whose value was too large to ride in a metric."""

    def values(self, rejects: list[Reject]) -> list[bytes | None]: ...


class Rejects:
    """The rejects table of a job, written by one release."""

    def __init__(self, place: Place, release: str, fetcher: Fetcher | None = None) -> None:
        schema = delta_schema(columns(SCHEMA, "rejects"))
        self._output = TableWriter(place, schema, f"{release}/rejects", description="Records that a job refused")
        self._arrow, self._release, self._fetcher = arrow_schema(schema), release, fetcher

    def committed(self) -> int:
        """Of the batches that had rejects. Creates the table, so that a job's rejects can be asked for before."""
        return self._output.applied()

    def prove(self, checkpoint: Checkpoint) -> None:
        refuse_ahead(checkpoint, self.committed(), f"table {self._output.place}")

    def commit(self, batch: Batch) -> Batch:
        rejects = batch.measures.rejects
        if rejects and self.committed() < batch.number:
            self._output.write(self._rows(self._whole(rejects), batch.number), batch.number, batch.metadata)
        return batch

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:  # noqa: ARG003
        """Nothing: the rejects of all releases of a job are one table."""
        return ()

    def _whole(self, rejects: list[Reject]) -> list[Reject]:
        cut = [reject for reject in rejects if reject.truncated]
        if not cut or self._fetcher is None:
            return rejects
        values = dict(zip(cut, self._fetcher.values(cut), strict=True))
        return [_with_value(reject, values[reject]) if reject in values else reject for reject in rejects]

    def _rows(self, rejects: list[Reject], batch: int) -> pa.Table:
        now = dt.datetime.now(dt.UTC)
        rows = [
            {
                "topic": reject.topic,
                "partition": reject.partition,
                "offset": reject.offset,
                "record_timestamp": dt.datetime.fromtimestamp(reject.timestamp_ms / 1000, dt.UTC),
                "key": reject.key,
                "value": reject.value,
                "reason": reject.reason,
                "release": self._release,
                "batch": batch,
                "rejected_at": now,
            }
            for reject in rejects
        ]
        return pa.Table.from_pylist(rows, schema=self._arrow)


class Limit:
    """The share of rejects among the newest records, above which a job stops rather than drops its input."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._recent: deque[tuple[int, int]] = deque()

    def check(self, release: str, records: int, rejects: list[Reject]) -> None:
        """Raises once the window's share is passed; the batch at hand is in it, and is not committed."""
        self._recent.append((records, len(rejects)))
        while len(self._recent) > 1 and sum(seen for seen, _ in self._recent) - self._recent[0][0] >= _WINDOW:
            self._recent.popleft()
        seen, bad = (sum(part) for part in zip(*self._recent, strict=True))
        if bad >= _FEW and bad > self._share * seen:
            job, _, version = release.partition("@")
            first = min(rejects, key=lambda reject: (reject.topic, reject.partition, reject.offset))
            raise RejectLimitExceeded(
                f"{job} {version} stopped at {first.topic}[{first.partition}]@{first.offset}: "
                f"{bad} of {seen} records rejected ({first.reason}), limit {self._share:.0%}.",
                remedy="Fix the producer or raise reject_limit, then `weir start` it again.",
            )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _with_value(reject: Reject, value: bytes | None) -> Reject:
    return Reject(
        reject.topic,
        reject.partition,
        reject.offset,
        reject.timestamp_ms,
        reject.key,
        value,
        reject.reason,
        reject.size,
    )
