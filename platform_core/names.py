"""One version word drives all: release `stock_stats@v2` names its group, table, checkpoint and code."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from platform_core.errors import UsageError

PART = "_part"  # the physical column by which a table's files are kept apart; readers never see it
CHANGE = "_change_type"  # what a batch's row does to its key; no table has such a column, Delta reserves the name
_SHAPE = re.compile(r"([a-z][a-z0-9_]{0,62})@v([1-9][0-9]*)")


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """A sentence to go behind an error, with a blank in front; nothing where no name is near."""
    near = difflib.get_close_matches(written, list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def named(text: str) -> tuple[str, ReleaseId | None]:
    """What a person may name: a job, or one of its releases as in stock_stats@v2."""
    if "@" not in text:
        return text, None
    release = ReleaseId.parse(text)
    return release.job, release


@dataclass(frozen=True, order=True)
class ReleaseId:
    job: str
    number: int

    @classmethod
    def parse(cls, text: str) -> ReleaseId:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is not a release.", remedy="Name a job and a version, as in stock_stats@v1.")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.job}@{self.version}"

    @property
    def version(self) -> str:
        return f"v{self.number}"

    @property
    def path(self) -> str:
        """Where it stands under the warehouse, the checkpoints and the releases."""
        return f"{self.job}/{self.version}"

    def topic(self, plain: str) -> str:
        """Where it publishes while it is not live; the live release alone writes the plain name."""
        return f"{plain}.{self.version}"

    @property
    def group(self) -> str:
        """The consumer group in which its progress is mirrored."""
        return f"{self.job}-{self.version}"
