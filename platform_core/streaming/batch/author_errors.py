"""What went wrong in an author's own code, in one line: the error's last words, and the author's own line.

Spark tells of a Python worker's error in its message, below words of its own; of an SQL expression's in its context.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platform_core.control.position import Position

ROOT = Path(__file__).resolve().parents[3]
_NOT_THEIRS = (sysconfig.get_paths()["stdlib"], str(ROOT / "platform_core"))
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "([^"]+)", line (\d+)', re.M)
_SITE = re.compile(r"(\S+\.py):(\d+)")
_LONGEST, _RANGES = 500, 4
Place = tuple[str, int]


def in_brief(error: BaseException) -> str:
    """`ZeroDivisionError: division by zero, at streaming_jobs/prices/job.py:12`, and what was noted of it."""
    words, places = _worker(str(error)) or (f"{type(error).__name__}: {first_line(error)}", _places(error))
    own = [place for place in places if is_authors(place[0])]
    at = f", at {told(*own[-1])}" if own else ""
    return "".join([words, at, *(f"; {note}" for note in getattr(error, "__notes__", ()))])


def first_line(error: BaseException) -> str:
    return _first(str(error)) or type(error).__name__


def is_authors(file: str) -> bool:
    """Whether it is neither Python's, nor a package's, nor the platform's."""
    packaged = "site-packages" in file or "pyspark.zip" in file or file.startswith("<")
    return not packaged and not file.startswith(_NOT_THEIRS)


def told(file: str, line: int) -> str:
    path = Path(file)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


@contextmanager
def placed(position: Callable[[], Position]) -> Generator[None]:
    """An error inside is noted with the records of the batch: which of them it was, Spark does not tell."""
    try:
        yield
    except Exception as error:
        error.add_note(_read(position()))
        raise


def _read(at: Position) -> str:
    ranges = [
        _range(f"{topic}[{partition}]", at.start.get(topic, {}).get(partition), after - 1)
        for topic, parts in sorted(at.offsets.items())
        for partition, after in sorted(parts.items())
        if after > at.start.get(topic, {}).get(partition, 0)
    ]
    ranges += [
        f"{name} up to {place}" for name, place in sorted(at.tables.items()) if place != at.tables_start.get(name)
    ]
    more = f" and of {len(ranges) - _RANGES} more partitions" if len(ranges) > _RANGES else ""
    return f"batch {at.batch} with {', '.join(ranges[:_RANGES]) or 'no records'}{more}"


def _range(where: str, first: int | None, last: int) -> str:
    """Where a release begins in a partition, its first batch does not tell."""
    if first is None:
        return f"{where} up to offset {last}"
    return f"{where}@{first}" if first == last else f"{where}@{first} to {last}"


def _worker(message: str) -> tuple[str, list[Place]] | None:
    """The last of the tracebacks that stand in the message: the ones before it are what led to it."""
    _, found, newest = message.rpartition(_TRACEBACK)
    if not found:
        return None
    after = (line for line in newest.splitlines() if line and not line[0].isspace())
    return _first("\n".join(after)), [(file, int(line)) for file, line in _FRAME.findall(newest)]


def _places(error: BaseException) -> Sequence[Place]:
    """Of an expression where it was written, of other errors the way to where they were raised."""
    contexts: list[Any] = getattr(error, "getQueryContext", list)() or []
    sites = [
        site for one in contexts if one.contextType().name == "DataFrame" for site in _SITE.findall(one.callSite())
    ]
    if sites:
        return [(file, int(line)) for file, line in sites]
    return [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_LONGEST]
