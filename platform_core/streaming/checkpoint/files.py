"""What a checkpoint says: the offsets and watermark of each batch, and which batches it calls done."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platform_core.control.position import (
    Offsets,
    Place,
    Places,
    Position,
    as_places,
    moved,
    offsets_of,
    tables_of,
    told,
)
from platform_core.errors import PositionError


@dataclass(frozen=True)
class Entry:
    """One file of the offset log: where the batch ends, and what was fixed before it ran."""

    batch: int
    places: Places
    watermark_ms: int
    planned_at_ms: int
    conf: dict[str, str]

    @property
    def offsets(self) -> Offsets:
        """Of its topics."""
        return offsets_of(self.places)


class Checkpoint:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def batches(self, log: str) -> list[int]:
        folder = self.path / log
        if not folder.is_dir():
            return []
        return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())

    @property
    def planned(self) -> int:
        """The newest batch with offsets, -1 without."""
        return max(self.batches("offsets"), default=-1)

    @property
    def done(self) -> int:
        """The newest batch that the checkpoint calls committed, -1 without."""
        return max(self.batches("commits"), default=-1)

    def identity(self) -> str:
        """The query's id: a checkpoint made anew has another. A new one's is made here, as outputs ask for it first."""
        file = self.path / "metadata"
        if not file.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(".new")
            unfinished.write_text(json.dumps({"id": str(uuid.uuid4())}))
            unfinished.replace(file)
        return str(json.loads(file.read_text())["id"])

    def entry(self, batch: int) -> Entry:
        file = self.path / "offsets" / str(batch)
        try:
            version, metadata, *lines = file.read_text().splitlines()
            facts: dict[str, Any] = json.loads(metadata)
            places = self._places([json.loads(line) for line in lines if line != "-"])
            if version != "v1" or not lines:
                raise ValueError(f"version line {version!r}, {len(lines)} sources")
        except (OSError, ValueError, KeyError) as error:
            raise PositionError(
                f"{file}: not a readable offsets file ({error}).",
                remedy="It was torn by a crash of the machine, or edited. Restore it from a copy of the checkpoint; "
                "without one, `weir release JOB --again` replays beside the table.",
            ) from error
        return Entry(batch, places, facts["batchWatermarkMs"], facts["batchTimestampMs"], facts.get("conf", {}))

    def next_watermark_ms(self) -> int:
        """The watermark that the newest finished batch left for the next."""
        if self.done < 0:
            return 0
        line = (self.path / "commits" / str(self.done)).read_text().splitlines()[1]
        return int(json.loads(line)["nextBatchWatermarkMs"])

    def write_entry(self, batch: int, text: str) -> None:
        """A batch planned from outside: Spark finishes what is planned before it plans anew."""
        folder = self.path / "offsets"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f".{batch}.crc").unlink(missing_ok=True)  # of an entry that stood here before
        unfinished = folder / f".{batch}.new"
        unfinished.write_text(text)
        unfinished.replace(folder / str(batch))

    def remove_entry(self, batch: int) -> None:
        (self.path / "offsets" / str(batch)).unlink()
        (self.path / "offsets" / f".{batch}.crc").unlink(missing_ok=True)

    def position(self, release: str, batch: int, newest_ms: int = 0) -> Position:
        """The position that a batch ends at, as the offset log has it before the batch runs."""
        entry = self.entry(batch)
        start = self.entry(batch - 1).places if batch > 0 else {}
        return Position(
            release,
            batch,
            entry.offsets,
            offsets_of(start),
            entry.watermark_ms,
            newest_ms=newest_ms,
            tables=tables_of(entry.places),
            tables_start=tables_of(start),
        )

    def _places(self, lines: list[dict[str, Any]]) -> Places:
        """What the sources' lines say, as the source of each kind of input writes them."""
        return _merged(lines)

    def late_before_ms(self, batch: int) -> int:
        """The watermark by which this batch's records are late: Spark applies that of the batch before."""
        return self.entry(batch - 1).watermark_ms if batch > 0 else 0

    def planned_at_ms(self, batch: int) -> int:
        return self.entry(batch).planned_at_ms


def _merged(lines: list[dict[str, dict[str, Any]]]) -> Places:
    """Two sources may read the same topic, each its own partitions."""
    merged: dict[str, Place] = {}
    for line in lines:
        for name, place in as_places(line).items():
            merged[name] = moved(merged.get(name, place), place)
    return merged


def prove(checkpoint: Checkpoint, applied: int, committed: Position | None, table: str) -> None:
    """Raises unless checkpoint and table agree on where the release is; `applied` is the table's newest batch.

    The table may be ahead of the checkpoint's commits by the one batch that a crash cut off, never further.
    """
    planned, done = checkpoint.planned, checkpoint.done
    here = f"Checkpoint {checkpoint.path}"
    if planned < 0 and applied >= 0:
        raise PositionError(
            f"{here} has no offsets, but table {table} holds batch {applied}"
            f"{f' up to {told(committed.places)}' if committed else ''}.",
            remedy="Restore the checkpoint from a copy; without one `weir release JOB --again` replays beside the "
            "table, and `weir reset JOB --from earliest` starts over. A fresh checkpoint would count batches from 0 "
            "and skip or double what the table has.",
        )
    if done > planned:
        raise PositionError(
            f"{here} has commits/{done} but no offsets/{done}; its newest offsets are of batch {planned}.",
            remedy=f"Restore offsets/{done} from a copy: without it an older batch would run again.",
        )
    if applied > planned or applied < done:
        raise PositionError(
            f"{here} is at batch {done} (planned {planned}), table {table} at batch {applied}.",
            remedy="One of them was restored to another time. Restore both from the same time.",
        )
    if planned >= 0:
        checkpoint.entry(planned)  # a torn newest file is named here, before Spark meets it
    if applied >= 0 and committed is not None and committed.batch == applied:
        _prove_offsets(checkpoint, committed, table)


def refuse_ahead(checkpoint: Checkpoint, has: int, what: str) -> None:
    """Whatever is written only now and then may have fewer batches than the checkpoint, and never more: of those that
    it has, none would be written again, whatever they read then."""
    if has > checkpoint.planned:
        raise PositionError(
            f"Checkpoint {checkpoint.path} has planned batch {checkpoint.planned}, {what} holds batch {has}.",
            remedy="One of them was restored to another time. Restore both from the same time; without a copy "
            "`weir release JOB --again` replays beside the table.",
        )


def _prove_offsets(checkpoint: Checkpoint, committed: Position, table: str) -> None:
    said = checkpoint.entry(committed.batch).places
    if said != committed.places:
        raise PositionError(
            f"Checkpoint {checkpoint.path} ends batch {committed.batch} at {told(said)}, "
            f"table {table} was committed at {told(committed.places)}.",
            remedy="They belong to different runs. Restore both from the same time.",
        )
