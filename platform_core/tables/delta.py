"""One Delta table and its one writer: every batch is one commit with the writer's name, the batch and the position.

Small changes are merged here, without a JVM: 19-28 ms a commit where Spark's MERGE takes 2 s and more.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.table import TableMerger

from platform_core.control.position import Position
from platform_core.errors import BatchFailed, Permanent
from platform_core.names import CHANGE, PART
from platform_core.storage import Place
from platform_core.tables.changes import ChangeType
from platform_core.tables.schema import arrow_schema

PROPERTIES = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.enableExpiredLogCleanup": "true",
    "delta.deletedFileRetentionDuration": "interval 2 hours",  # a merge a second leaves a file a second behind
}


class TableWriter:
    """A table as its writer `app` sees it. A batch that it has already is skipped, whoever wrote it."""

    def __init__(
        self, place: Place, schema: Schema, app: str, key: tuple[str, ...] = (), description: str = ""
    ) -> None:
        self.place, self.app, self.key = place, app, key
        self._schema, self._description = schema, description
        self._arrow = arrow_schema(schema)

    @cached_property
    def table(self) -> DeltaTable:
        try:
            return self.place.table()
        except TableNotFoundError:
            parts = [PART] if PART in self._arrow.names else None
            return DeltaTable.create(
                self.place.uri,
                self._schema,
                mode="ignore",
                partition_by=parts,
                description=self._description or None,
                configuration=PROPERTIES,
                storage_options=dict(self.place.options),
            )

    @property
    def columns(self) -> list[str]:
        return list(self._arrow.names)

    def applied(self) -> int:
        """The newest batch of this writer that the table holds, -1 without."""
        self.table.update_incremental()
        return self._seen()

    def _seen(self) -> int:
        """The same as of the version that is loaded. Enough to write by: what another has committed since then under
        this writer's name is a conflict, and fails the commit. To look for newer versions costs 5 ms of CPU."""
        version = self.table.transaction_version(self.app)
        return -1 if version is None else version

    def position(self) -> Position | None:
        """The position that the newest commit of this writer carries."""
        for commit in self.table.history(50):  # commits of maintenance carry none
            if "userMetadata" in commit and f'"release":"{self.app}"' in commit["userMetadata"]:
                return Position.from_json(commit["userMetadata"])
        return None

    def write(self, rows: pa.Table, batch: int, metadata: str) -> int:
        """One commit, with or without rows; the table's version after it."""
        if self._seen() >= batch:
            return self.table.version()
        self._refuse_changes(rows)
        rows = self._shaped(rows)
        done = CommitProperties(
            app_transactions=[Transaction(self.app, batch)], custom_metadata={"userMetadata": metadata}
        )
        try:
            if rows.num_rows and self.key:
                self._merge(rows, done)
            elif rows.num_rows:
                write_deltalake(self.table, rows, mode="append", commit_properties=done)
            if self._seen() < batch:  # nothing changed, so nothing was committed: the position still moves
                self._commit_bare(done)
        except CommitFailedError as error:
            raise BatchFailed(
                f"{self.place}: batch {batch} of {self.app} was not committed: {error}.",
                remedy="Another writer of the same release committed first; only one may run.",
            ) from error
        return self.table.version()

    def _commit_bare(self, done: CommitProperties) -> None:
        parts = [PART] if PART in self._arrow.names else None
        self.table.create_write_transaction([], "append", self._schema, parts, commit_properties=done)
        self.table.update_incremental()

    def _merge(self, rows: pa.Table, done: CommitProperties) -> None:
        self._refuse_unkeyed(rows)
        merger = self.table.merge(rows, self._matches(rows), source_alias="s", target_alias="t", commit_properties=done)
        if CHANGE not in rows.column_names:
            self._updating(merger).when_not_matched_insert_all().execute()
            return
        gone = f"s.\"{CHANGE}\" = '{ChangeType.DELETE}'"
        merger = self._updating(merger.when_matched_delete(gone))
        merger.when_not_matched_insert_all(f"({gone}) IS NOT TRUE", except_cols=[CHANGE]).execute()

    def _updating(self, merger: TableMerger) -> TableMerger:
        """Rows that say what the table says already are left alone, where their types can be compared."""
        rest = [field for field in self._arrow if field.name not in (*self.key, PART)]
        if any(pa.types.is_nested(field.type) for field in rest):
            return merger.when_matched_update_all(except_cols=[CHANGE])
        differs = " OR ".join(f'(s."{field.name}" IS DISTINCT FROM t."{field.name}")' for field in rest)
        return merger.when_matched_update_all(predicate=differs, except_cols=[CHANGE]) if differs else merger

    def _matches(self, rows: pa.Table) -> str:
        names = [*self.key, *([PART] if PART in rows.column_names else [])]
        same = " AND ".join(f't."{name}" = s."{name}"' for name in names)
        if PART not in rows.column_names:
            return same
        touched = ", ".join(f"'{part}'" for part in sorted(rows[PART].unique().to_pylist()))
        return f'{same} AND t."{PART}" IN ({touched})'  # literals, so that other parts' files are not even listed

    def _refuse_unkeyed(self, rows: pa.Table) -> None:
        for name in self.key:
            if rows[name].null_count:
                raise Permanent(
                    f"{self.place}: {rows[name].null_count} of {rows.num_rows} rows have no {name}, part of the key.",
                    remedy="Drop them in the transform, or reject them by a row rule.",
                )
        if rows.group_by(list(self.key)).aggregate([]).num_rows < rows.num_rows:
            raise Permanent(
                f"{self.place}: a batch has several rows of one key ({', '.join(self.key)}).",
                remedy="Give one row a key, or keep `record` in the transform's result: the newest record wins.",
            )

    def _refuse_changes(self, rows: pa.Table) -> None:
        """A table without a key only grows: no row of it can be found again."""
        if self.key or CHANGE not in rows.column_names:
            return
        others = sorted({str(kind) for kind in rows[CHANGE].unique().to_pylist()} - {ChangeType.INSERT.value})
        if others:
            raise Permanent(
                f"{self.place}: a batch has rows to {' and '.join(others)}, and the table has no key to find them by.",
                remedy="Declare the table's key.",
            )

    def _shaped(self, rows: pa.Table) -> pa.Table:
        change = [pa.field(CHANGE, pa.string())] if self.key and CHANGE in rows.column_names else []
        shape = pa.schema([*self._arrow, *change])
        return rows.select(shape.names).cast(shape)
