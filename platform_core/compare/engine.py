"""Two tables compared, whole and exactly, in bounded memory.

1 fingerprint every file that is not known yet        2 find the buckets whose sums differ
3 set the rows of those side by side, slice by slice  4 count, explain, and choose examples
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from platform_core.compare.comparison import (
    EXAMPLES,
    KINDS,
    ColumnFigures,
    Comparison,
    Count,
    Example,
    Kind,
    Shown,
)
from platform_core.compare.fingerprints import Fingerprints
from platform_core.compare.pairs import SIGNS, Pairs
from platform_core.compare.saved import SavedComparisons
from platform_core.compare.sides import Side
from platform_core.compare.specification import ComparisonSpec, asked

if TYPE_CHECKING:
    import pyarrow as pa

Explain = Callable[["pa.Table"], Mapping[str, Sequence[int]]]
"""From the unexpected rows, with `side` ("left" or "right") and `number`, to the numbers that each reason explains."""

MEMORY = "2GB"
_SUMS = "cast(sum(n) as bigint) as n{0}, cast(sum(s) as bigint) as s{0}, bit_xor(x) as x{0}"


def compare(
    left: Side,
    right: Side,
    key: Sequence[str],
    *,
    folder: Path,
    columns: Sequence[str] | None = None,
    expect: Mapping[str, str] | None = None,
    explain: Explain | None = None,
    memory: str = MEMORY,
) -> Comparison:
    """What the right side has otherwise than the left. Under `folder` stands what is kept from one to the next."""
    began = time.monotonic()
    expect = dict(expect or {})
    question = asked(left, right, key, columns, expect)
    with _connected(folder, memory) as duck:
        run = _Run(duck, question, left, right, folder)
        found = run.result(explain)
    offsets = right.position.places if right.position else {}
    return replace(found, expect=expect, offsets=offsets, seconds=round(time.monotonic() - began, 3))


@contextmanager
def _connected(folder: Path, memory: str) -> Generator[duckdb.DuckDBPyConnection]:
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"memory_limit": memory, "temp_directory": str(folder / "spilled")}
    duck = duckdb.connect(":memory:", config={**settings, "preserve_insertion_order": "false"})
    try:
        duck.execute("set TimeZone = 'UTC'")
        duck.execute("set python_enable_replacements = false")
        yield duck
    finally:
        duck.close()


class _Run:
    def __init__(
        self, duck: duckdb.DuckDBPyConnection, question: ComparisonSpec, left: Side, right: Side, folder: Path
    ) -> None:
        self._duck, self._question, self._left, self._right = duck, question, left, right
        names = [side.release.replace("@", "-") for side in (left, right)]
        self._prints = [
            Fingerprints(duck, left, "left", folder / names[0]),
            Fingerprints(duck, right, "right", folder / names[1]),
        ]
        self._pairs = Pairs(duck, question, left, right)
        self._kept = SavedComparisons(duck, folder / f"{names[0]}-{names[1]}" / question.digest())

    def result(self, explain: Explain | None) -> Comparison:
        for prints in self._prints:
            prints.take(self._question)
        self._find_differing()
        self._pairs.create()
        self._kept.recall()
        self._forget_outdated()
        self._pairs.take("todo")
        if self._one("select count(*) from todo"):
            self._kept.keep()
        self._number()
        self._explain(explain)
        return self._told()

    def _find_differing(self) -> None:
        left, right = (
            f"select part, bucket, {_SUMS.format(at)} from {name}_files where n > 0 group by part, bucket"
            for at, name in (("l", "left"), ("r", "right"))
        )
        place = "coalesce(l.part, r.part) as part, coalesce(l.bucket, r.bucket) as bucket"
        self._duck.execute(
            f"create table differing as select {place}, {SIGNS} "
            f"from ({left}) l full join ({right}) r on l.part = r.part and l.bucket = r.bucket "
            "where (nl, sl, xl) is distinct from (nr, sr, xr)"
        )

    def _forget_outdated(self) -> None:
        same = " and ".join(
            f"f.{name} is not distinct from d.{name}" for name in ("part", "bucket", *SIGNS.split(", "))
        )
        current = f"select 1 from differing d where {same}"
        self._duck.execute(f"delete from figures f where not exists ({current})")
        known = "select 1 from figures f where f.part = d.part and f.bucket = d.bucket"
        self._duck.execute(f"delete from differences d where not exists ({known})")
        self._duck.execute(f"create table todo as select * from differing d where not exists ({known})")

    def _number(self) -> None:
        """The unexpected ones first, in the order of their keys, so that two comparisons show the same examples."""
        first = "coalesce(l, r)"
        order = ", ".join(f"{first}.{column.place}" for column in self._question.identity) or "1"
        self._duck.execute(
            "create table listed as select row_number() over (order by unexpected desc, kind, "
            f"{order}) as number, *, cast(null as varchar) as because from differences"
        )

    def _explain(self, explain: Explain | None) -> None:
        if explain is None or not self._one("select count(*) from listed where unexpected") or self._unlisted():
            return
        for label, numbers in explain(self._unexpected_rows()).items():
            self._duck.execute(
                "update listed set because = ? where number in (select unnest(?)) and unexpected and because is null",
                [label, [int(number) for number in numbers]],
            )

    def _unexpected_rows(self) -> pa.Table:
        """A row for each side that has the key: number, side, and the columns as they are."""
        parts: list[str] = []
        for side, name in (("l", "left"), ("r", "right")):
            values = ", ".join(
                f'{"make_timestamp" if column.time else ""}({side}.{column.place}) as "{column.name}"'
                for column in self._question.columns
            )
            parts.append(
                f"select number, '{name}' as side, kind, {values} from listed where unexpected and {side} is not null"
            )
        return self._duck.sql(" union all ".join(parts)).to_arrow_table()

    def _unlisted(self) -> int:
        counts = "coalesce(sum(u_only_left + u_only_right + u_changed), 0)"
        return int(self._one(f"select {counts} - (select count(*) from listed where unexpected) from figures"))

    def _told(self) -> Comparison:
        rows = [int(self._one(f"select coalesce(sum(n), 0) from {side}_files")) for side in ("left", "right")]
        doubled = self._duck.execute(
            "select coalesce(sum(doubled_left), 0), coalesce(sum(doubled_right), 0) from figures"
        )
        doubles: Any = doubled.fetchall()[0]
        return Comparison(
            left=self._left.release,
            right=self._right.release,
            left_version=self._left.version,
            right_version=self._right.version,
            key=self._question.key,
            rows_left=rows[0],
            rows_right=rows[1],
            counts={kind: self._count(kind) for kind in KINDS},
            columns=self._columns(),
            schema=self._question.schema,
            doubled_left=int(doubles[0]),
            doubled_right=int(doubles[1]),
            examples=self._examples(),
            unlisted=self._unlisted(),
            files=len(self._left.files) + len(self._right.files),
            files_read=sum(prints.read for prints in self._prints),
            parts=int(self._one("select count(distinct part) from (from left_files union all from right_files)")),
            parts_paired=self._pairs.parts,
        )

    def _count(self, kind: Kind) -> Count:
        name = kind.replace(" ", "_")
        sums: Any = self._duck.execute(
            f"select coalesce(sum({name}), 0), coalesce(sum(u_{name}), 0) from figures"
        ).fetchall()[0]
        because = self._duck.execute(
            "select because, count(*) from listed where kind = ? and because is not null group by 1 order by 1", [kind]
        )
        return Count(int(sums[0]), int(sums[1]), dict(because.fetchall()))

    def _columns(self) -> tuple[ColumnFigures, ...]:
        explained = dict(
            self._duck.execute(
                "select unnest(beyond) as name, count(*) from listed where because is not null group by 1"
            ).fetchall()
        )
        found: list[ColumnFigures] = []
        for at, column in enumerate(self._question.columns):
            if column in self._question.identity:
                continue
            sums: Any = self._duck.execute(
                f"select coalesce(sum(d{at}), 0), coalesce(sum(u{at}), 0), max(m{at}) from figures"
            ).fetchall()[0]
            largest = sums[2] / 1e6 if sums[2] is not None and column.time else sums[2]
            left = int(sums[1]) - int(explained.get(column.name, 0))
            found.append(ColumnFigures(column.name, int(sums[0]), left, largest))
        return tuple(found)

    def _examples(self) -> tuple[Example, ...]:
        """The unexplained first."""
        shown = [f"case when {side} is null then null else [{self._as_text(side)}] end" for side in "lr"]
        rows = self._duck.execute(
            f"select kind, changed, unexpected, because, {shown[0]}, {shown[1]} from listed "
            "qualify row_number() over (partition by kind order by because is not null, number) <= ? "
            "order by not unexpected, because is not null, number",
            [EXAMPLES],
        ).fetchall()
        return tuple(self._example(row) for row in rows)

    def _as_text(self, side: str) -> str:
        return ", ".join(column.shown.format(f"{side}.{column.place}") for column in self._question.columns)

    def _example(self, row: Sequence[Any]) -> Example:
        kind, changed, unexpected, because, left, right = row
        names = [column.name for column in self._question.columns]
        sides: list[Shown | None] = [
            None if values is None else dict(zip(names, values, strict=True)) for values in (left, right)
        ]
        one = sides[0] or sides[1] or {}
        key = {name: one[name] for name in self._question.key}
        reason = "" if unexpected else "expected"
        return Example(kind, key, sides[0], sides[1], tuple(changed), because or reason)

    def _one(self, query: str) -> Any:
        return self._duck.execute(query).fetchall()[0][0]  # to its end: what is not fetched blocks the next one
