"""The checkpoint of a script's run, its offsets told as those of the topics."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from platform_core.control.position import Places
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.testing.topics import ScriptTopics


class ScriptCheckpoint(Checkpoint):
    """The real one, but for the source's own lines: they count batches of the script."""

    def __init__(self, path: str | Path, topics: ScriptTopics) -> None:
        super().__init__(path)
        self._topics = topics

    def number(self, batch: int) -> int:
        """The newest batch of the script that a batch of the query has read."""
        lines = (self.path / "offsets" / str(batch)).read_text().splitlines()[2:]
        return _newest([json.loads(line) for line in lines])

    def brings_records(self, batch: int) -> bool:
        return batch == 0 or self.number(batch) > self.number(batch - 1)

    def plan(self, watermark_ms: int) -> None:
        """The next batch reads nothing and has that watermark, or the present one where that is newer."""
        done = self.done
        version, metadata, *lines = (self.path / "offsets" / str(done)).read_text().splitlines()
        facts: dict[str, Any] = json.loads(metadata)
        facts["batchWatermarkMs"] = max(watermark_ms, self.next_watermark_ms())
        facts["batchTimestampMs"] = int(time.time() * 1000)
        self.write_entry(done + 1, "\n".join([version, json.dumps(facts, separators=(",", ":")), *lines]))

    def _places(self, lines: list[dict[str, Any]]) -> Places:
        return self._topics.end(_newest(lines))


def _newest(lines: list[dict[str, Any]]) -> int:
    return max(int(line["logOffset"]) for line in lines)
