"""What a transform must not ask, as a replay is given another answer: the clock, chance, where a record happens to be.

The plan says what is asked. Which line asks it, Spark does not know of functions: so the author's calls are watched
while the transform makes its plan.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
import uuid
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from platform_core.streaming.batch.author_errors import is_authors, told
from platform_core.streaming.transform.nodes import listed, nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANCE: Any = random.random  # of the one generator that has no seed of the author's
_PYTHONS = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")
_BUILT_IN = (time.time, time.time_ns, os.urandom, _CHANCE)
_WRITTEN = {uuid.uuid1.__code__, uuid.uuid4.__code__}
_SAME = {"current_timezone"}  # the platform's sessions are in UTC
_ALSO_CALLED = {
    "current_timestamp": ("current_timestamp", "unix_timestamp", "now"),
    "current_date": ("current_date", "curdate"),
    "current_schema": ("current_schema", "current_database"),
    "session_user": ("session_user", "user"),
    "current_user": ("current_user", "user"),
    "rand": ("rand", "random", "sampleBy"),
    "sample": ("sample", "randomSplit"),
}


@dataclass(frozen=True)
class Call:
    """A function of Spark's that was called, with the texts of its arguments, as SQL may stand in them."""

    name: str
    texts: tuple[str, ...]
    at: str

    def asks(self, name: str) -> bool:
        names = _ALSO_CALLED.get(name, (name,))
        words = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b", re.I)
        return self.name in names or any(words.search(text) for text in self.texts)


class Calls(list[Call]):
    """What was called of Spark's, and at which lines Python itself was asked for the time or for chance."""

    def __init__(self) -> None:
        super().__init__()
        self.impure: list[str] = []


@contextmanager
def watched() -> Generator[Calls]:
    """The calls that authors' code makes inside."""
    calls, spark = Calls(), str(Path(sys.modules["pyspark"].__file__ or "").parent)

    def look(frame: FrameType, what: str, argument: Any) -> None:
        if what == "c_call" and is_authors(frame.f_code.co_filename) and _is_impure(argument):
            calls.impure.append(f"{_title(argument)} at {_place(frame)}")
        elif (
            what == "call" and frame.f_code in _WRITTEN and frame.f_back and is_authors(frame.f_back.f_code.co_filename)
        ):
            calls.impure.append(f"uuid.{frame.f_code.co_name}() at {_place(frame.f_back)}")
        elif what == "call" and frame.f_code.co_filename.startswith(spark):
            calls.extend(_call(frame, spark))

    former = sys.getprofile()
    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(former)


def unrepeatable(rows: DataFrame, calls: Calls) -> list[str]:
    """Each thing that the plan asks and no replay gets again, with the line that asks it."""
    asked = dict.fromkeys(_asked(rows))
    return [*dict.fromkeys(calls.impure), *(f"{name}(){_line(name, calls)}" for name in asked)]


def unrepeatable_rule(records: DataFrame, holds: str) -> list[str]:
    """The same of a condition alone, whatever the records are made of."""
    kept: Any = records.where(holds)
    return [f"{name}()" for name in dict.fromkeys(_asked_in(kept._jdf.queryExecution().analyzed(), kept.sparkSession))]


def _line(name: str, calls: Iterable[Call]) -> str:
    lines = dict.fromkeys(call.at for call in calls if call.asks(name))
    return f" at {', '.join(lines)}" if lines else ""


def _call(frame: FrameType, spark: str) -> Iterator[Call]:
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith(spark):
        caller = caller.f_back
    if caller is None or not is_authors(caller.f_code.co_filename):
        return
    texts = tuple(text for value in frame.f_locals.values() for text in _texts(value))
    yield Call(_called(frame), texts, _place(caller))


def _called(frame: FrameType) -> str:
    """A function of the author's own is called by Spark's wrapper, which knows its name."""
    name = frame.f_code.co_name
    own = getattr(frame.f_locals.get("self"), "__dict__", {}) if name == "__call__" else {}
    return str(own.get("_name", name))


def _texts(value: Any) -> list[str]:
    parts = value if isinstance(value, tuple | list) else [value]
    return [part for part in parts if isinstance(part, str)]


def _place(frame: FrameType) -> str:
    return told(frame.f_code.co_filename, frame.f_lineno)


def _is_impure(function: Any) -> bool:
    return function in _BUILT_IN or getattr(function, "__qualname__", "") in _PYTHONS


def _title(function: Any) -> str:
    module = getattr(function, "__module__", None)
    title = "random.random" if function == _CHANCE else function.__qualname__
    return f"{'' if module is None or '.' in title else module + '.'}{title}()".replace("posix.", "os.")


def _asked(rows: Any) -> Iterator[str]:
    for node in nodes(rows._jdf.queryExecution().analyzed()):
        if node.nodeName() == "Sample":
            yield "sample"
        yield from _asked_in(node, rows.sparkSession)


def _asked_in(node: Any, session: Any) -> Iterator[str]:
    """By their names in SQL. Spark marks what is about the present moment, and what is not deterministic."""
    present = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    for expression in listed(node.expressions()):
        yield from _asked_by(expression, present)


def _asked_by(expression: Any, present: Any) -> Iterator[str]:
    """Of what is suspect, the innermost: what is made of it is suspect for no other reason."""
    if expression.deterministic() and not expression.containsPattern(present):
        return
    name, inner = str(expression.prettyName()).lower(), listed(expression.children())
    inner = [one for one in inner if not one.deterministic() or one.containsPattern(present)]
    for child in inner:
        yield from _asked_by(child, present)
    if not inner and name not in _SAME:
        yield expression.name() if name == "pythonudf" else name
