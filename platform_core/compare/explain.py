"""Differences that no bug explains: what one side's further watermark emitted, and what was late on one side alone.

At the same offsets two releases may stand at different clocks, because their batches were others. Spark is started only
when there are differences, and some are left after what the clocks alone explain.
"""

from __future__ import annotations

import json
import logging
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from platform_core.compare.late import Taken
from platform_core.control.position import Offsets, Position, as_text, records_between
from platform_core.declare import described
from platform_core.declare.durations import duration
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
NOT_YET_DUE, LATE = "not yet due", "late on one side"
MARGIN_MS = 600_000  # around the differing rows: as far as a join may look
MOST_RECORDS = 5_000_000  # to be read again; beyond that, differences stay unexplained
_SIDES = ("left", "right")


@dataclass(frozen=True)
class DeclaredClocks:
    """What the clocks can do to a job's rows, as its manifest tells."""

    final: bool  # rows come once, when the watermark lets them go
    clocked: bool
    watermarked: bool
    wait_ms: int | None  # None: no lookups

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> DeclaredClocks:
        streams = [part for part in described.transformed(declared).values() if part["lateness"]]
        waits = [_milliseconds(part["wait"]) for part in described.lookups(declared).values()]
        keyed = bool(declared.get("output", {}).get("key"))
        emits = declared.get("emits")
        return cls(
            final=emits == "final" or (emits is None and not keyed),
            clocked=bool(streams),
            watermarked=any(part["topic"]["event_time"] is None for part in streams),
            wait_ms=max(waits) if waits else None,
        )

    @property
    def may_be_late(self) -> bool:
        return self.watermarked or self.wait_ms is not None

    def due_ms(self, position: Position) -> int | None:
        """Up to when rows have been let go; None: nothing waits."""
        bounds = [position.watermark_ms] if self.clocked else []
        bounds += [position.newest_ms - self.wait_ms] if self.wait_ms is not None else []
        return min(bounds, default=None)


def not_yet_due(rows: pa.Table, declared: DeclaredClocks, left: Position, right: Position) -> list[int]:
    """Rows of one side that the other one will have, too, when its watermark has come so far."""
    due = {"left": declared.due_ms(left), "right": declared.due_ms(right)}
    if not declared.final or due["left"] is None or due["right"] is None or due["left"] == due["right"]:
        return []
    behind, until = min(due.items(), key=lambda one: one[1] or 0)
    ahead = f"only {'left' if behind == 'right' else 'right'}"
    each = zip(rows["number"].to_pylist(), rows["kind"].to_pylist(), moments_of(rows), strict=True)
    return sorted({number for number, kind, span in each if kind == ahead and span and span[1] >= (until or 0)})


def moments_of(rows: pa.Table) -> list[tuple[int, int] | None]:
    """The first and the last moment that each row names, in milliseconds; None where it names none."""
    times = [field.name for field in rows.schema if pa.types.is_timestamp(field.type)]
    values = [rows[name].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() for name in times]
    each = [[at // 1000 for at in row if at is not None] for row in zip(*values, strict=True)]
    return [(min(row), max(row)) if row else None for row in each] if times else [None] * rows.num_rows


def neighbourhood(rows: pa.Table) -> tuple[int, int] | None:
    """From when to when, in milliseconds, records may have to do with the rows; None where rows name no time."""
    spans = [span for span in moments_of(rows) if span is not None]
    if not spans:
        return None
    return min(first for first, _ in spans) - MARGIN_MS, max(last for _, last in spans) + MARGIN_MS


def taken(positions: Sequence[Position], until: Offsets, span: tuple[int, int]) -> list[Taken]:
    """The batches that may have read records of that time, from a history in order; the first tells only its clock."""
    found: list[Taken] = []
    for before, one in pairwise(positions):
        if one.newest_ms < span[0] or before.watermark_ms > span[1] or records_between(one.offsets, until) < 0:
            continue  # not there yet; past all of it, so that both sides drop it; after what is compared
        found.append(Taken(one.start, one.offsets, before.watermark_ms, before.newest_ms))
    return found


def reach(batches: Mapping[str, Sequence[Taken]]) -> tuple[Offsets, Offsets]:
    """From the first record that one of them read to the last."""
    lasts = [batches[side][-1].end for side in _SIDES]
    places = {(topic, partition) for end in lasts for topic, parts in end.items() for partition in parts}
    start: dict[str, dict[int, int]] = {}
    end: dict[str, dict[int, int]] = {}
    for topic, partition in places:
        firsts = [batches[side][0].start for side in _SIDES]
        start.setdefault(topic, {})[partition] = min(_at(one, topic, partition) for one in firsts)
        end.setdefault(topic, {})[partition] = max(_at(one, topic, partition) for one in lasts)
    return start, end


def _at(offsets: Offsets, topic: str, partition: int) -> int:
    return offsets.get(topic, {}).get(partition, 0)


@dataclass(frozen=True)
class Rereading:
    """How the newer release's archive is asked about late records."""

    job: str
    command: Sequence[str]  # takes the path of a request; platform_core/archived/protocol.py
    environment: Mapping[str, str]
    home: Path
    log: Path
    ignored: tuple[str, ...] = ()  # columns that are expected to differ

    def late(self, rows: pa.Table, batches: Mapping[str, Sequence[Taken]]) -> list[int]:
        if not all(batches[side] for side in _SIDES):
            return []
        start, end = reach(batches)
        if (records := records_between(start, end)) > MOST_RECORDS:
            event(logger, "differences not explained", job=self.job, records=records, limit=MOST_RECORDS)
            return []
        with tempfile.TemporaryDirectory(dir=self.home) as folder:
            return self._asked(Path(folder), rows, batches, (start, end))

    def _asked(
        self, folder: Path, rows: pa.Table, batches: Mapping[str, Sequence[Taken]], span: tuple[Offsets, Offsets]
    ) -> list[int]:
        parquet.write_table(_zoned(rows), folder / "rows.parquet")
        sides = {side: [one.to_plain() for one in batches[side]] for side in _SIDES}
        start, end = (as_text(one) for one in span)
        asked: dict[str, Any] = {"job": self.job, "rows": str(folder / "rows.parquet"), "start": start, "end": end}
        asked |= {"ignored": self.ignored, **sides}
        (folder / "request.json").write_text(json.dumps(asked))
        argv = [*self.command, str(folder / "request.json")]
        with self.log.open("ab") as log:
            log.write(f"{datetime.now(UTC).isoformat()} {self.job}\n".encode())
            ran = subprocess.run(
                argv, env=dict(self.environment), cwd=self.home, stdout=subprocess.PIPE, stderr=log, check=False
            )
        if ran.returncode != 0:
            event(logger, "differences not explained", level=logging.WARNING, job=self.job, log=str(self.log))
            return []
        return json.loads(ran.stdout.decode().splitlines()[-1])


def _zoned(rows: pa.Table) -> pa.Table:
    """The engine's timestamps are UTC's and do not say so."""
    fields = [
        pa.field(field.name, pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type)
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _milliseconds(text: str) -> int:
    return int(duration(text, "wait").total_seconds() * 1000)
