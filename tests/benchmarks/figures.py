"""A measured number, what it is held to, and the table of all of them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

FAILED = "failed"


@dataclass(frozen=True)
class Figure:
    of: str  # what was measured
    name: str
    value: float | None  # None: it could not be, and `note` says why
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.value is None or (self.at_least is None and self.at_most is None):
            return None
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def target(self) -> str:
        low = "" if self.at_least is None else f"≥ {written(self.at_least)}"
        high = "" if self.at_most is None else f"≤ {written(self.at_most)}"
        return low or high


def attempted(of: str, measure: Callable[[], list[Figure]]) -> list[Figure]:
    """What it measured; a failure is told in the table, and costs no other figure."""
    try:
        return measure()
    except Exception as error:
        print(f"{of} failed: {error}", file=sys.stderr, flush=True)
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        return [Figure(of, FAILED, None, "", note=f"{type(error).__name__}: {first}"[:200])]


def written(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(figures: Sequence[Figure]) -> str:
    """As Markdown."""
    lines = ["| measured | figure | value | target | |", "|---|---|---:|---:|---|"]
    for one in figures:
        met = {None: one.note, True: "met", False: "**missed**"}[one.met]
        lines.append(f"| {one.of} | {one.name} | {written(one.value)} {one.unit} | {one.target} | {met} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Machine:
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    java: str
    load_at_start: float  # above the number of cores, other programs took part: trust the ratios alone

    @property
    def described(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gb} GiB, {self.system}, Python {self.python}, "
            f"{self.java}; load at the start {self.load_at_start}"
        )


def this_machine(java: Path) -> Machine:
    told = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False).stderr
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        java=told.splitlines()[0] if told else "?",
        load_at_start=round(os.getloadavg()[0], 1),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
