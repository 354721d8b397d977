"""One side of a comparison: a release's table at one version, as the files and columns that DuckDB reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import fs

from platform_core.control.position import Position
from platform_core.errors import Retryable, UsageError
from platform_core.names import PART
from platform_core.read.engine import duck_type, quoted
from platform_core.storage import Place

_UNREAD = {"deletionVectors", "columnMapping"}  # bare Parquet files would show wrong rows; our writers use neither
_IN_PART = re.compile(rf"/{re.escape(PART)}=([^/]*)/")


@dataclass(frozen=True)
class Side:
    """`layout` says how the table lays out its files: parts of two sides are the same where it is the same."""

    release: str
    place: Place
    version: int
    position: Position | None = None
    layout: str = ""

    @cached_property
    def table(self) -> DeltaTable:
        try:
            opened = self.place.table(self.version)
        except DeltaError as error:
            raise Retryable(
                f"{self}: {self.place} cannot be read at that version: {_first_line(error)}.",
                remedy="Its history was cleaned up meanwhile, or nothing was written yet. Compare a newer position.",
            ) from error
        features = set(opened.protocol().reader_features or ()) & _UNREAD
        if features:
            raise UsageError(
                f"{self}: the table uses {', '.join(sorted(features))}, which cannot be compared file by file.",
                remedy="Rewrite the table without it; no writer of the platform needs it.",
            )
        return opened

    @cached_property
    def files(self) -> dict[str, str]:
        """Each data file with its part; all in one part where the table has none."""
        found = {path: _IN_PART.search(f"/{path}") for path in self.place.files(self.table)}
        return {path: match[1] if match else "" for path, match in found.items()}

    @cached_property
    def types(self) -> dict[str, Any]:
        """Delta's type of each column that readers see."""
        fields = json.loads(self.table.schema().to_json())["fields"]
        return {field["name"]: field["type"] for field in fields if field["name"] != PART}

    @cached_property
    def _dataset(self) -> ds.FileSystemDataset:
        return self.table.to_pyarrow_dataset()

    @cached_property
    def _fragments(self) -> dict[str, Any]:
        return {str(fragment.path): fragment for fragment in self._dataset.get_fragments()}

    def rows_of(self, files: Iterable[str], duck: duckdb.DuckDBPyConnection) -> str:
        """A relation of these files' rows in the table's own types, with `filename` and the part.

        The first, empty branch names every column: a file from before a column was added does not have it.
        """
        chosen = sorted(files)
        self._refuse_missing(chosen)
        kinds = {**{name: duck_type(kind) for name, kind in self.types.items()}, PART: "VARCHAR", "filename": "VARCHAR"}
        none = ", ".join(f"cast(null as {kind}) as {quoted(name)}" for name, kind in kinds.items())
        if not chosen:
            return f"(select {none} where false)"
        read = self._read_far(chosen, duck) if self.place.path is None else self._read_here(chosen)
        typed = ", ".join(f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in kinds.items())
        return f"(select {typed} from (select {none} where false union all by name {read}))"

    def _read_here(self, files: Iterable[str]) -> str:
        parts = ", ".join(f"{quoted(name)}: VARCHAR" for name in self.table.metadata().partition_columns)
        how = f"hive_types = {{{parts}}}" if parts else "hive_partitioning = false"
        names = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
        return f"select * from read_parquet([{names}], union_by_name = true, filename = true, {how})"

    def _read_far(self, files: Iterable[str], duck: duckdb.DuckDBPyConnection) -> str:
        """Through Arrow, as DuckDB has no way of its own into an object store; for one reading."""
        whole, name = self._dataset, f"far {self.release}"
        chosen = ds.FileSystemDataset(
            [self._fragments[file] for file in files], whole.schema, whole.format, whole.filesystem
        )
        duck.register(name, chosen.scanner(columns=[*whole.schema.names, "__filename"]))
        return f"select * exclude (__filename), __filename as filename from {quoted(name)}"

    def _refuse_missing(self, files: Sequence[str]) -> None:
        if self.place.path is not None:
            gone = [path for path in files if not Path(path).exists()]
        else:
            found = self._dataset.filesystem.get_file_info(list(files))
            gone = [one.path for one in found if one.type is fs.FileType.NotFound]
        if gone:
            raise Retryable(
                f"{self}: {len(gone)} of its files are gone, {gone[0]} first: they were cleaned up.",
                remedy="Compare a newer position; a hold keeps the files while a comparison runs.",
            )

    def __str__(self) -> str:
        return f"{self.release} at version {self.version}"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
