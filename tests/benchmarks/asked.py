"""What a run of the benchmarks was asked to do."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Of = TypeVar("Of")


@dataclass(frozen=True)
class Asked:
    work: Path  # all state of what is measured; deleted afterwards
    peer: Path  # where a Kafka Streams peer may be
    quick: bool = False
    jobs: tuple[str, ...] = ()  # none named: all
    began: float = field(default_factory=time.monotonic)

    def of_jobs(self, all_of_them: Mapping[str, Of]) -> dict[str, Of]:
        return {name: one for name, one in all_of_them.items() if not self.jobs or name in self.jobs}

    def say(self, what: str) -> None:
        print(f"[{time.monotonic() - self.began:6.0f} s]   {what}", flush=True)
