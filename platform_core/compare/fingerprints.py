"""Fingerprints of a table: sums over row hashes by file, part and bucket. Equal sums are equal rows.

Sums add up over files, and files of a Delta table never change: so a file is read once, and the next comparison reads
what is new alone. That two different buckets agree by chance has odds of one to 2^64 and less.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import duckdb

from platform_core.compare.sides import Side
from platform_core.compare.specification import ComparisonSpec

SUMS = "n, s, x"
_COLUMNS = "file varchar, part varchar, bucket utinyint, n bigint, s bigint, x ubigint"
_AT_ONCE = 4000  # files in one statement


class Fingerprints:
    """One side's, kept under `folder` from one comparison to the next."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, side: Side, place: Literal["left", "right"], folder: Path
    ) -> None:
        self._duck, self._side, self._folder = duck, side, folder
        self._place: Literal["left", "right"] = place
        self.read = 0

    @property
    def table(self) -> str:
        return f"{self._place}_files"

    def take(self, question: ComparisonSpec) -> None:
        """Makes `table`: of known files as kept, of the others by reading them."""
        own = [column.left if self._place == "left" else column.right for column in question.columns]
        kept = self._folder / f"{question.digest(*own)}.parquet"
        self._duck.execute(f"create or replace table {self.table} ({_COLUMNS})")
        known = self._recall(kept)
        new = sorted(set(self._side.files) - known)
        for start in range(0, len(new), _AT_ONCE):
            rows = question.hashed_rows(self._side, self._place, new[start : start + _AT_ONCE], self._duck)
            sums = "count(*), cast(sum(cast(h >> 32 as bigint)) as bigint), bit_xor(h)"
            self._duck.execute(
                f"insert into {self.table} select file, part, bucket, {sums} from ({rows}) group by file, part, bucket"
            )
        self.read = len(new)
        if new:
            self._keep(kept, new)

    def _recall(self, kept: Path) -> set[str]:
        if not kept.exists():
            return set()
        self._duck.execute("create or replace temp table present (file varchar)")
        self._duck.execute("insert into present select unnest(?)", [list(self._side.files)])
        self._duck.execute(
            f"insert into {self.table} select * from read_parquet(?) semi join present using (file)", [str(kept)]
        )
        found = self._duck.execute(f"select distinct file from {self.table}").fetchall()
        return {row[0] for row in found}

    def _keep(self, kept: Path, new: list[str]) -> None:
        """Files without rows too: a line without a count stands for them."""
        empty = f"select file, '', 0, 0, 0, 0 from (select unnest(?) as file) anti join {self.table} using (file)"
        self._duck.execute(f"insert into {self.table} {empty}", [new])
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}.new")
        self._duck.execute(f"copy {self.table} to '{_escaped(unfinished)}' (format parquet)")
        unfinished.replace(kept)


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")
