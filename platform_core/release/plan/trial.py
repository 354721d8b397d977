"""`weir plan JOB --last 1h`: the live release's transform and the tree's over the same records, and what differs.

Two processes at once, each with its own code and environment; neither touches a table, a topic or a checkpoint.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.archived import protocol
from platform_core.broker import Broker
from platform_core.compare import Comparison, Side, compare
from platform_core.control.catch_up import duration
from platform_core.control.position import as_text
from platform_core.control.releases import Release
from platform_core.declare import described
from platform_core.errors import BatchFailed
from platform_core.release import archive
from platform_core.release.plan.recent import Recent, recent
from platform_core.release.plan.tree import Tree
from platform_core.release.plan.wording import moment
from platform_core.settings import Settings
from platform_core.storage import Place

if TYPE_CHECKING:
    import pyarrow as pa

TREE = "working tree"
CUT = "cut by the range's edges"
MOST = 500_000  # records; what two processes on 2 cores read, compute and compare within a minute
_SECONDS = 900
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b.*:")


@dataclass(frozen=True)
class Trial:
    range: Recent
    comparison: Comparison
    personal: tuple[str, ...]  # columns whose values are not for a pull request
    seconds: float


@dataclass(frozen=True)
class _Program:
    """What runs one side."""

    name: str
    command: Sequence[str]  # takes the job and a folder; platform_core/archived/protocol.py
    environment: Mapping[str, str]


class Sides:
    """Two processes that load their code and start Spark, until they are told over which records to run."""

    def __init__(self, settings: Settings, live: Release, folder: Path) -> None:
        self._settings, self._live, self._folder = settings, live, folder
        self._children: list[tuple[_Program, subprocess.Popen[str]]] = []

    def begin(self) -> None:
        for program in _programs(self._settings, self._live):
            self._children.append((program, _begin(program, self._live.id.job, _place(self._folder, program))))

    def run(
        self, tree: Tree, last: timedelta, most: int = MOST, tell: Callable[[str], None] = lambda _: None
    ) -> Callable[[], Trial]:
        """Chooses the records and lets both run. What it returns waits for them, and compares. `tell` hears of it."""
        began = time.monotonic()
        declared = [self._live.manifest["declared"], tree.declared]
        events, lookups = (
            [name for one in declared for name in described.topics(kind(one).values())]
            for kind in (described.transformed, described.lookups)
        )
        tell(f"choosing the records of the last {duration(last.total_seconds())}")
        chosen = recent(Broker(self._settings), events, lookups, last, most)
        tell(f"reading {chosen.records:,} records up to {moment(chosen.until_ms)} on both sides")
        for program, child in self._children:
            _ask(child, chosen, times=program.name == TREE)  # both read the same records

        def result() -> Trial:
            deadline = time.monotonic() + _SECONDS
            told: dict[str, dict[str, Any]] = {}
            for one, child in self._children:
                tell(f"waiting for the rows of {_named(one)}")
                told[one.name] = _told(one, child, self._folder, deadline)
            rows = " with ".join(f"{told[one.name]['rows']:,} rows of {_named(one)}" for one, _ in self._children)
            tell(f"comparing {rows}")
            comparison = _compared(self._live, tree, told[TREE], self._folder)
            personal = tuple(tree.declared["output"]["personal"])
            return Trial(chosen, comparison, personal, round(time.monotonic() - began, 1))

        return result

    def end(self) -> None:
        """Each is a session of its own, its Java with it."""
        for _, child in self._children:
            with child:  # waits, and closes its pipes
                if child.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def sides(settings: Settings, live: Release) -> Generator[Sides]:
    """Of the live release and of the working tree. Neither process is left, whatever happens, nor their folder."""
    with tempfile.TemporaryDirectory(prefix="weir-plan-") as folder:
        both = Sides(settings, live, Path(folder))
        try:
            both.begin()
            yield both
        finally:
            both.end()


def _programs(settings: Settings, live: Release) -> list[_Program]:
    frozen = archive.verify(settings, live.id, live.revision)
    python = archive.python_for(settings, frozen)
    old = archive.environment_for(settings, archive.code_of(settings, frozen), python)
    new = archive.environment_for(settings, settings.root, Path(sys.executable))
    ours = protocol.command(sys.executable, protocol.PROTOCOL, "trial")
    return [_Program(live.title, archive.entered(python, frozen, "trial"), old), _Program(TREE, ours, new)]


def _begin(program: _Program, job: str, place: Path) -> subprocess.Popen[str]:
    place.mkdir()
    command = [*program.command, job, str(place)]
    with (place / "log").open("w") as log:
        return subprocess.Popen(
            command,
            env=dict(program.environment),
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def _ask(child: subprocess.Popen[str], chosen: Recent, *, times: bool) -> None:
    question = {"start": as_text(chosen.start), "end": as_text(chosen.end), "times": times}
    with suppress(BrokenPipeError):  # it has ended; its result tells why
        if child.stdin is not None:
            child.stdin.write(json.dumps(question) + "\n")
            child.stdin.flush()


def _told(program: _Program, child: subprocess.Popen[str], folder: Path, deadline: float) -> dict[str, Any]:
    try:
        out, _ = child.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise BatchFailed(
            f"The batch of {program.name} has not ended after {_SECONDS} s.", remedy="Run it over less with --last 10m."
        ) from error
    if child.returncode != 0:
        raise BatchFailed(
            f"The batch of {program.name} failed: {_cause(_place(folder, program) / 'log')}",
            remedy="Correct the job; `weir check` compares its columns.",
        )
    return json.loads(out.splitlines()[-1])


def _named(program: _Program) -> str:
    return f"the {TREE}" if program.name == TREE else program.name


def _place(folder: Path, program: _Program) -> Path:
    return folder / ("new" if program.name == TREE else "old")


def _cause(log: Path) -> str:
    """The line that names the newest error: Spark's messages go on below it, for pages."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]
    return (named or lines or ["it said nothing"])[-1].strip()[:300]


def _compared(live: Release, tree: Tree, times: Mapping[str, Any], folder: Path) -> Comparison:
    old, new = live.manifest["declared"]["output"], tree.declared["output"]
    sides = ((live.title, "old"), (TREE, "new"))
    left, right = (Side(name, Place(str(folder / place / "rows")), 0) for name, place in sides)
    return compare(
        left,
        right,
        new["key"] if new["key"] == old["key"] else (),
        folder=folder / "compared",
        expect=tree.declared.get("expect", {}),
        explain=lambda rows: {CUT: outside(rows, times["oldest_ms"], times["newest_ms"])},
    )


def outside(rows: pa.Table, oldest_ms: int | None, newest_ms: int | None) -> list[int]:
    """The numbers of rows that reach beyond the records read, by any of their times: a window that the range cuts."""
    import pyarrow as pa

    if oldest_ms is None or newest_ms is None:
        return []
    found: set[int] = set()
    for field in rows.schema:
        if pa.types.is_timestamp(field.type):
            at = rows[field.name].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
            beyond = [one is not None and not oldest_ms * 1000 <= one <= newest_ms * 1000 + 999 for one in at]
            numbers = rows["number"].to_pylist()
            found |= {number for number, cut in zip(numbers, beyond, strict=True) if cut}
    return sorted(found)
