"""Moving a release to a chosen position: its next batch is planned here, runs as one batch, and ends there exactly.

Spark writes a batch's offsets before it runs it, and finishes what is planned before it plans anew. So an entry that is
written before the query starts becomes its next batch (measured: it ends at the planned offsets, state included).
"""

from __future__ import annotations

import json
import time
from typing import Any

from platform_core.control.position import Places, as_places, as_text, moved, reached, told
from platform_core.errors import PositionError
from platform_core.streaming.checkpoint.files import Checkpoint


class PlannedBatches:
    """The offset log of one release, written by the platform instead of by Spark."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    @property
    def unfinished(self) -> bool:
        """Whether a planned batch has still to run. It is never planned anew: its table commit may exist already."""
        return self._checkpoint.planned > self._checkpoint.done

    def at(self) -> Places:
        """Where the last finished batch ended."""
        done = self._checkpoint.done
        return self._checkpoint.entry(done).places if done >= 0 else {}

    def watermark_ms(self) -> int:
        """Of the last finished batch."""
        done = self._checkpoint.done
        return self._checkpoint.entry(done).watermark_ms if done >= 0 else 0

    def plan(self, target: Places, watermark_ms: int) -> int:
        """Writes the entry of the next batch, which ends at `target`; returns its number."""
        if self.unfinished:
            raise PositionError(
                f"Checkpoint {self._checkpoint.path}: batch {self._checkpoint.planned} is planned and not finished.",
                remedy="Run it first.",
            )
        self._refuse_backwards(target)
        done = self._checkpoint.done
        self._write(done + 1, self._text(done), target, max(watermark_ms, self.watermark_ms()))
        return done + 1

    def plan_first(self, target: Places) -> None:
        """Spark has planned batch 0 and was not let begin it: settings and sources are its own, the end is ours."""
        self._write(0, self._text(0), target, 0)

    def withdraw(self, batch: int) -> None:
        """Takes back what is planned after `batch`, the newest that was let begin: nothing of it can be written."""
        planned = self._checkpoint.planned
        if self._checkpoint.done < planned and planned > batch:
            self._checkpoint.remove_entry(planned)

    def _text(self, batch: int) -> list[str]:
        return (self._checkpoint.path / "offsets" / str(batch)).read_text().splitlines()

    def _write(self, batch: int, template: list[str], target: Places, watermark_ms: int) -> None:
        version, metadata, *lines = template
        facts: dict[str, Any] = json.loads(metadata)
        facts |= {"batchWatermarkMs": watermark_ms, "batchTimestampMs": int(time.time() * 1000)}
        moved = [_moved(line, target) for line in lines]
        self._checkpoint.write_entry(batch, "\n".join([version, json.dumps(facts, separators=(",", ":")), *moved]))

    def _refuse_backwards(self, target: Places) -> None:
        for name, place in self.at().items():
            end = moved(place, target.get(name))
            if not reached(end, place):
                raise PositionError(
                    f"Checkpoint {self._checkpoint.path} is at {told({name: place})}, "
                    f"the step would end at {told({name: end})}.",
                    remedy="A release only moves forward; start a new one to read again.",
                )


def _moved(line: str, target: Places) -> str:
    """A source's line with the target's places of its own inputs; what the target does not name stays."""
    if line == "-":
        return line
    ends = {name: moved(place, target.get(name)) for name, place in as_places(json.loads(line)).items()}
    return json.dumps(as_text(ends), separators=(",", ":"))


def reaches(one: Places, other: Places) -> bool:
    """Whether `one` is nowhere behind `other`, in the inputs that both have."""
    return all(reached(one[name], other[name]) for name in one.keys() & other.keys())
