"""Expectation suites: what the rows of a table must look like, checked from outside while the job runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal

from platform_core.declare.durations import duration
from platform_core.declare.wanted import are
from platform_core.errors import DeclarationError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_KIND = re.compile(r"expect_[a-z0-9_]+")


@dataclass(frozen=True)
class Expect:
    """One expectation: `kind` is its name in great-expectations, as in expect_column_values_to_be_between."""

    name: str  # how people speak of it; the asset check's name
    kind: str
    arguments: Mapping[str, Any]
    severity: Literal["error", "warn"] = "error"
    description: str = ""

    def __post_init__(self) -> None:
        for label, value, shape in (("name", self.name, _NAME), ("kind", self.kind, _KIND)):
            if not shape.fullmatch(value):
                raise DeclarationError(
                    f"expectation {self.name!r}.{label}: {value!r} is not one.", remedy=f"It matches {shape.pattern}."
                )
        object.__setattr__(self, "arguments", MappingProxyType(dict(self.arguments)))


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The expectations of one table, over the rows whose `newest_by` lies within `newest` of the newest one.

    A running job's table grows without end; a suite reads a bounded piece of it, the newest.
    """

    table: str
    expectations: tuple[Expect, ...]
    newest_by: str  # a TIMESTAMP column of the table
    newest: str = "2 hours"
    schedule: str = "*/15 * * * *"  # cron, UTC

    def __post_init__(self) -> None:
        here = f"suite of table {self.table!r}"
        duration(self.newest, f"{here}.newest")
        are(self.expectations, Expect, f"{here}.expectations", "expectations=(Expect(...),): a tuple, with its comma")
        names = [expectation.name for expectation in self.expectations]
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles or not names:
            came = f"{doubles[0]!r} stands twice" if doubles else "it has none"
            raise DeclarationError(f"{here}.expectations: {came}.", remedy="Name each expectation once.")

    @property
    def reaches_back(self) -> timedelta:
        return duration(self.newest, "newest")
