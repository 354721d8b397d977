"""Rows of differing buckets set side by side: figures of each bucket, and the differing rows themselves.

Work is cut into slices of a bounded number of rows. What a bucket gave is kept with its fingerprints: the next
comparison takes it over where neither side has changed.
"""

from __future__ import annotations

import duckdb

from platform_core.compare.columns import ComparedColumn
from platform_core.compare.comparison import EXAMPLES
from platform_core.compare.sides import Side
from platform_core.compare.specification import ComparisonSpec

LISTED = 100_000  # unexpected differences that are kept as rows
SLICE_ROWS = 2_000_000  # of both sides, in memory at once
SIGNS = "nl, sl, xl, nr, sr, xr"  # the fingerprints of a bucket on both sides
_COUNTS = ("only_left", "only_right", "changed")


class Pairs:
    """Fills the tables `figures` and `differences` for every bucket that `take` is given."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, question: ComparisonSpec, left: Side, right: Side) -> None:
        self._duck, self._question = duck, question
        self._left, self._right = left, right
        self.parts = 0

    def create(self) -> None:
        signs = "nl bigint, sl bigint, xl ubigint, nr bigint, sr bigint, xr ubigint"
        counts = ", ".join(f"{name} bigint, u_{name} bigint" for name in _COUNTS)
        each = "".join(f", d{at} bigint, u{at} bigint, m{at} double" for at in range(len(self._question.columns)))
        self._duck.execute(
            f"create table figures (part varchar, bucket utinyint, {signs}, {counts}, "
            f"doubled_left bigint, doubled_right bigint{each})"
        )
        none = self._question.hashed_rows(self._left, "left", (), self._duck)
        row = f"select {self._struct('')} from ({none}) limit 0"
        shape = self._duck.execute(f"describe {row}").fetchall()[0][1]
        self._duck.execute(
            "create table differences (part varchar, bucket utinyint, kind varchar, unexpected boolean, "
            f"changed varchar[], beyond varchar[], l {shape}, r {shape})"
        )

    def take(self, todo: str) -> None:
        """`todo` is a table of part, bucket and the signs."""
        self._duck.execute(
            f"create or replace temp table cut as select *, cast(floor((sum(coalesce(nl, 0) + coalesce(nr, 0)) over "
            f"(order by part, bucket) - 1) / {SLICE_ROWS}) as int) as slice from {todo}"
        )
        self.parts = self._one("select count(distinct part) from cut")
        for number in self._duck.execute("select distinct slice from cut order by 1").fetchall():
            self._duck.execute(
                f"create or replace temp table slice as select * exclude (slice) from cut where slice = {number[0]}"
            )
            self._take_slice()

    def _take_slice(self) -> None:
        for name, side, place in (("l", self._left, "left"), ("r", self._right, "right")):
            files = f"select distinct file from {place}_files semi join slice using (part, bucket)"
            found = [row[0] for row in self._duck.execute(files).fetchall()]
            rows = self._question.hashed_rows(side, place, found, self._duck)  # pyright: ignore[reportArgumentType]
            self._duck.execute(
                f"create or replace temp table {name} as select * from ({rows}) semi join slice using (part, bucket)"
            )
        self._number_doubles()
        self._duck.execute(f"create or replace temp table pairs as {self._paired()}")
        self._add_figures()
        self._add_differences()
        for name in ("l", "r", "pairs", "l_numbered", "r_numbered"):
            self._duck.execute(f"drop table if exists {name}")

    def _number_doubles(self) -> None:
        """Rows of one identity are numbered, so that each meets at most one of the other side."""
        same = ", ".join(["part", "bucket", "kh", *(column.place for column in self._question.identity)])
        doubled = " union all ".join(
            f"select '{side}' as side, part, bucket, kh from {side} group by {same} having count(*) > 1"
            for side in "lr"
        )
        self._duck.execute(f"create or replace temp table doubled as {doubled}")
        self._numbered = bool(self._one("select count(*) from doubled"))
        for side in "lr" if self._numbered else "":
            rank = f"row_number() over (partition by {same} order by h)"
            self._duck.execute(
                f"create or replace temp table {side}_numbered as "
                f"select *, 1 as n from {side} anti join doubled using (kh) "
                f"union all select *, {rank} as n from {side} semi join doubled using (kh)"
            )

    def _paired(self) -> str:
        left, right = ("l_numbered", "r_numbered") if self._numbered else ("l", "r")
        same = ["l.kh = r.kh", *(["l.n = r.n"] if self._numbered else [])]
        same += [f"l.{column.place} is not distinct from r.{column.place}" for column in self._question.identity]
        both = "(l.kh is not null and r.kh is not null)"
        flags = "".join(f", {both} and {column.unexpected} as u{at}" for at, column in self._rest)
        flags += "".join(f", {both} and {column.differs} as d{at}" for at, column in self._rest)
        flags += "".join(f", {_size(column)} as m{at}" for at, column in self._rest if column.difference)
        return (
            "select coalesce(l.part, r.part) as part, coalesce(l.bucket, r.bucket) as bucket, "
            "case when r.kh is null then 'only left' when l.kh is null then 'only right' else 'changed' end as kind, "
            f"case when l.kh is null then null else {self._struct('l.')} end as l, "
            f"case when r.kh is null then null else {self._struct('r.')} end as r{flags} "
            f"from {left} l full join {right} r on {' and '.join(same)} "
            "where l.kh is null or r.kh is null or l.h <> r.h"
        )

    def _add_figures(self) -> None:
        counts = "".join(
            f", count_if(kind = '{name.replace('_', ' ')}') as {name}, "
            f"count_if(kind = '{name.replace('_', ' ')}' and {self._unexpected}) as u_{name}"
            for name in _COUNTS
        )
        identity = {column.place for column in self._question.identity}
        each = ""
        for at, column in enumerate(self._question.columns):
            compared = column.place not in identity
            largest = f"max(m{at})" if compared and column.difference else "cast(null as double)"
            sums = (f"count_if(d{at})", f"count_if(u{at})") if compared else ("0", "0")
            each += f", {sums[0]} as d{at}, {sums[1]} as u{at}, {largest} as m{at}"
        doubles = "count_if(side = 'l') as doubled_left, count_if(side = 'r') as doubled_right"
        doubles = f"select part, bucket, {doubles} from doubled where {self._question.keyed} group by part, bucket"
        columns = "".join(f", p.d{at}, p.u{at}, p.m{at}" for at in range(len(self._question.columns)))
        named = ", ".join(f"p.{name}, p.u_{name}" for name in _COUNTS)
        self._duck.execute(
            f"insert into figures select s.part, s.bucket, {SIGNS}, {named}, doubled_left, doubled_right{columns} "
            f"from slice s left join (select part, bucket{counts}{each} from pairs group by part, bucket) p "
            f"using (part, bucket) left join ({doubles}) d using (part, bucket)"
        )

    def _add_differences(self) -> None:
        lists = [
            "list_filter(["
            + ", ".join(f"case when {flag}{at} then '{_text(column.name)}' end" for at, column in self._rest)
            + "]::varchar[], lambda x: x is not null)"
            for flag in "du"
        ]
        rows = f"select part, bucket, kind, {self._unexpected} as unexpected, {lists[0]}, {lists[1]}, l, r from pairs"
        left = LISTED - self._one("select count(*) from differences where unexpected")
        self._duck.execute(f"insert into differences {rows} where {self._unexpected} limit {max(0, left)}")
        few = f"not {self._unexpected} qualify row_number() over (partition by kind) <= {EXAMPLES}"
        self._duck.execute(f"insert into differences {rows} where {few}")

    @property
    def _rest(self) -> list[tuple[int, ComparedColumn]]:
        identity = {column.place for column in self._question.identity}
        return [(at, column) for at, column in enumerate(self._question.columns) if column.place not in identity]

    @property
    def _unexpected(self) -> str:
        rows = self._question.rows
        gone = "false" if rows and rows.rows_may_go else "kind = 'only left'"
        new = "false" if rows and rows.rows_may_come else "kind = 'only right'"
        return "(" + " or ".join([gone, new, *(f"u{at}" for at, _ in self._rest)]) + ")"

    def _struct(self, side: str) -> str:
        return "{" + ", ".join(f"'{column.place}': {side}{column.place}" for column in self._question.columns) + "}"

    def _one(self, query: str) -> int:
        return int(self._duck.execute(query).fetchall()[0][0])


def _size(column: ComparedColumn) -> str:
    """Null where it is none: of infinity and NaN there is no largest."""
    size = f"cast(abs({column.difference}) as double)"
    return f"case when {column.differs} and isfinite({size}) then {size} end"


def _text(value: str) -> str:
    return value.replace("'", "''")
