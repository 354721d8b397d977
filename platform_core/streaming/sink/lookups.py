"""Lookups joined as of each row's own time, and the rows that wait for them.

Every record of a lookup is kept with its time, so that a row joins what was true at its moment, in the live run as in a
replay. The history lives in memory for the join and in a Delta table a lookup for the restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute
from deltalake import DeltaTable
from pyarrow import feather

from platform_core.declare import Lookup, Table, described
from platform_core.declare.schemas import columns
from platform_core.errors import Permanent
from platform_core.names import CHANGE
from platform_core.storage import Place
from platform_core.streaming.checkpoint.files import Checkpoint, refuse_ahead
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.streaming.transform.query_plan import lookup_column
from platform_core.tables.changes import ChangeType, deleted
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import arrow_schema, delta_schema, table_schema

if TYPE_CHECKING:
    from platform_core.streaming.batch.value import Batch

pc: Any = pyarrow.compute  # its functions are made at import, where no type checker sees them
_FACTS = "key STRING, at TIMESTAMP, offset BIGINT, deleted BOOLEAN"


class LookupTable:
    """All versions of one lookup, by key and time."""

    def __init__(
        self,
        name: str,
        lookup: Lookup,
        place: Place,
        release: str,
        output: Table,
        duck: duckdb.DuckDBPyConnection,
    ) -> None:
        """`output` is the table whose rows get its columns."""
        self.name, self.lookup, self._duck = name, lookup, duck
        self._order = [field.name for field in table_schema(output).fields]
        taken = [column for column in lookup.topic.columns if column.name in lookup.takes]
        schema = delta_schema([*columns(_FACTS, "lookup"), *taken])
        self._output = TableWriter(
            place, schema, f"{release}/{name}", description=f"Every version of {lookup.topic.name}"
        )
        self._arrow = arrow_schema(schema)
        self._view = f"history_{name}"
        self._load(self._output.table)

    def committed(self) -> int:
        """Of the batches that brought versions."""
        return self._output.applied()

    def prove(self, checkpoint: Checkpoint) -> None:
        refuse_ahead(checkpoint, self.committed(), f"table {self._output.place}")

    def commit(self, batch: Batch) -> Batch:
        self._add(batch.lookups[self.name], batch)
        return replace(batch, changes=self.joined(batch.changes))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:
        names = sorted(described.lookups(of.declared))
        return [Remains.of(f"lookup {name}", of.settings.storage.lookup(of.release, name)) for name in names]

    def _add(self, versions: pa.Table, batch: Batch) -> None:
        if not versions.num_rows or self.committed() >= batch.number:
            return  # a repeated batch: the table, and so the memory, has them
        versions = versions.select(self._arrow.names).cast(self._arrow)
        self._output.write(versions, batch.number, batch.metadata)
        self._insert(versions)

    def joined(self, rows: pa.Table) -> pa.Table:
        """The rows with the lookup's columns: the newest version not later than the row's time."""
        self._duck.register("rows_", rows)
        try:
            return self._duck.sql(self._query(rows.column_names)).to_arrow_table()
        finally:
            self._duck.unregister("rows_")

    def _query(self, given: list[str]) -> str:
        part = self.lookup
        known = "h.key IS NOT NULL AND NOT h.deleted"
        chosen = []
        for name in (*self._order, CHANGE):
            if name in part.takes:
                chosen.append(_either(known, f'h."{name}"', part.otherwise.get(name), name))
            elif name == part.dated:
                chosen.append(f'CASE WHEN {known} THEN h.at END AS "{name}"')
            elif name in part.otherwise:
                chosen.append(
                    f'CASE WHEN {known} THEN r."{name}" ELSE {_literal(part.otherwise[name])} END AS "{name}"'
                )
            elif name in given:
                chosen.append(f'r."{name}"')
        wanted = f'SELECT * FROM {self._view} WHERE key IN (SELECT CAST("{part.on}" AS VARCHAR) FROM rows_)'
        return (
            f"SELECT {', '.join(chosen)} FROM rows_ r ASOF LEFT JOIN ({wanted}) h "
            f'ON CAST(r."{part.on}" AS VARCHAR) = h.key AND r."{part.at}" >= h.at '
            f"WHERE {self._kept(known, CHANGE in given)}"
        )

    def _kept(self, known: str, changes: bool) -> str:
        """Which rows are written. A deletion always is: what it deletes may have had its record."""
        if not self.lookup.required:
            return "true"
        return f"({known}) OR r.\"{CHANGE}\" = '{ChangeType.DELETE.value}'" if changes else known

    def _load(self, table: DeltaTable) -> None:
        history = table.to_pyarrow_table().cast(self._arrow)
        self._duck.register("loaded", history)
        self._duck.execute(f"CREATE OR REPLACE TABLE {self._view} AS SELECT * FROM loaded")
        self._duck.unregister("loaded")
        self._thin()

    def _insert(self, versions: pa.Table) -> None:
        self._duck.register("added", versions)
        self._duck.execute(f"INSERT INTO {self._view} SELECT * FROM added")
        self._duck.unregister("added")
        self._thin()

    def _thin(self) -> None:
        """Of several records of a key at one time the one with the highest offset counts."""
        self._duck.execute(
            f"DELETE FROM {self._view} a USING {self._view} b "
            "WHERE a.key = b.key AND a.at = b.at AND a.offset < b.offset"
        )


class Waiting:
    """Rows that still wait for a lookup's record on its way: part of the checkpoint, one file a batch."""

    def __init__(self, folder: Path, table: Table, lookups: Mapping[str, Lookup]) -> None:
        self._lookups = [part for part in lookups.values() if part.waits]
        taken = {name for part in lookups.values() for name in part.fills}
        self._arrow = arrow_schema(table_schema(table, without=taken))
        self._folder = folder

    def committed(self) -> int:
        return max((int(file.stem) for file in self._folder.glob("*.arrow")), default=-1)

    def prove(self, checkpoint: Checkpoint) -> None:
        refuse_ahead(checkpoint, self.committed(), f"folder {self._folder}")

    def commit(self, batch: Batch) -> Batch:
        return replace(batch, changes=self.released(batch.changes, batch.position.newest_ms, batch.number))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:  # noqa: ARG003
        """Nothing beside the checkpoint, of which it is a part."""
        return ()

    def released(self, rows: pa.Table, clock_ms: int, batch: int) -> pa.Table:
        """The rows whose time to wait is over by the release's clock; the others are kept for a later batch."""
        if not self._lookups:
            return rows
        self._refuse_deletes(rows)
        together = pa.concat_tables([self._left_by(batch - 1), rows.select(self._arrow.names).cast(self._arrow)])
        due = self._due(together, clock_ms)
        self._keep(together.filter(pc.invert(due)), batch)
        return together.filter(due)

    def _refuse_deletes(self, rows: pa.Table) -> None:
        if deleted(rows).num_rows:
            raise Permanent(
                "A batch deletes rows of a job whose rows wait for lookups: a deletion would overtake its row.",
                remedy="Declare the lookups without `wait`.",
            )

    def _due(self, rows: pa.Table, clock_ms: int) -> pa.ChunkedArray | pa.Array:
        due = pa.array([True] * rows.num_rows, pa.bool_())
        for part in self._lookups:
            until = pa.scalar(clock_ms - int(part.waits.total_seconds() * 1000), pa.int64())
            at_ms = pc.floor_temporal(rows[part.at], unit="millisecond").cast(pa.timestamp("ms", "UTC"))
            due = pc.and_(due, pc.less_equal(at_ms.cast(pa.int64()), until))
        return due

    def _left_by(self, batch: int) -> pa.Table:
        if batch < 0:
            return self._arrow.empty_table()
        return feather.read_table(self._file(batch)).cast(self._arrow)

    def _keep(self, rows: pa.Table, batch: int) -> None:
        """Two files suffice: what the newest batch left, and what it started from, as a crash may repeat it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f"{batch}.new"
        feather.write_feather(rows, unfinished)
        unfinished.replace(self._file(batch))
        self._file(batch - 2).unlink(missing_ok=True)

    def _file(self, batch: int) -> Path:
        return self._folder / f"{batch}.arrow"


def split(rows: pa.Table, lookups: Mapping[str, Lookup]) -> tuple[pa.Table, dict[str, pa.Table]]:
    """A batch's output rows, and each lookup's records that rode with them."""
    names = [lookup_column(name) for name in lookups]
    ours = rows
    found: dict[str, pa.Table] = {}
    for name, column in zip(lookups, names, strict=True):
        here = pc.is_valid(rows[column])
        found[name] = pa.Table.from_struct_array(rows[column].filter(here).combine_chunks())
        ours = ours.filter(pc.is_null(ours[column]))
    return ours.drop_columns(names), found


def _either(known: str, value: str, otherwise: Any, name: str) -> str:
    return f'CASE WHEN {known} THEN {value} ELSE {_literal(otherwise)} END AS "{name}"'


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else str(value)
