"""Which rows the platform makes of records: one version of all that decides them outside a job's own code.

A plan compares the version that a release was frozen with and the tree's. Where they differ, each raise between them
that touches the job is a reason to replay it; any other change of the platform is a revision. So the platform's modules
may be renamed, moved and rewritten freely, and whoever changes what they compute says so here.

Raise it when, of one job and the same records in the same batches, a driver of the tree would leave other rows in the
table or records in the output topic than one of a release that is frozen by now: another record is refused or late,
a value is read or written otherwise, another version of a lookup is joined, another row of a key wins, the watermark
stands elsewhere. Where only some jobs are touched, `touches` says which, so that the others need no replay.

Do not raise it for what no reader of table or topic can see: other batches, speed, layout of files, the wording of a
reject's reason, or rows that a fault of the platform would have lost and a restart brings back.

tests/archived/test_rows.py holds the version to rows that are kept beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Raise:
    """`touches` is asked of a job's declared values, as the manifest holds them."""

    version: int
    what: str  # how rows differ from those of the version before
    touches: Callable[[Mapping[str, Any]], bool]


FIRST = 1  # what intake, lookups and the encoding of records amounted to until commit 186ad77


def _publishes_odd_json(declared: Mapping[str, Any]) -> bool:
    publish = declared.get("publish") or {}
    one = publish if isinstance(publish, Mapping) else {}  # several topics came after version 2
    written = [part["is"] for part in (one.get("key"), one.get("value")) if part]
    schema = re.sub(r"COMMENT\s+'[^']*'", "", str(declared["output"]["schema"]).upper())
    before = [schema[: found.start()] for found in re.finditer(r"\bTIMESTAMP\b", schema)]
    nested = any(text.count("<") > text.count(">") for text in before)
    return "Json" in written and (nested or re.search(r"\b(BINARY|TIMESTAMP_NTZ)\b", schema) is not None)


RAISES = (  # the oldest first
    Raise(
        FIRST + 1,
        "in published JSON bytes are in base64, times within arrays, maps and structs are ISO 8601 in UTC, and times "
        "without a zone do not end in Z: Spark reads them back",
        _publishes_odd_json,
    ),
)
ROWS_VERSION = FIRST + len(RAISES)


def reasons(was: int, now: int, declared: Mapping[str, Any], raises: Sequence[Raise] = RAISES) -> Iterator[str]:
    """Why a job's rows of one version are not those of the other."""
    if was > now:
        yield f"the platform makes rows of version {was} in the release, of version {now} here"
    for one in raises:
        if was < one.version <= now and one.touches(declared):
            yield f"the platform's rows, version {one.version}: {one.what}"
