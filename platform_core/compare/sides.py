"""One side of a comparison: a release's table at one version, as the files and columns that DuckDB reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from platform_core.control.position import Position
from platform_core.errors import Retryable, UsageError
from platform_core.names import PART
from platform_core.read.engine import duck_type, quoted

_UNREAD = {"deletionVectors", "columnMapping"}  # bare Parquet files would show wrong rows; our writers use neither
_IN_PART = re.compile(rf"/{re.escape(PART)}=([^/]*)/")


@dataclass(frozen=True)
class Side:
    """`layout` says how the table lays out its files: parts of two sides are the same where it is the same."""

    release: str
    uri: str
    version: int
    position: Position | None = None
    layout: str = ""

    @cached_property
    def table(self) -> DeltaTable:
        try:
            opened = DeltaTable(self.uri, version=self.version)
        except DeltaError as error:
            raise Retryable(
                f"{self}: {self.uri} cannot be read at that version: {_first_line(error)}.",
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
        paths = [uri.removeprefix("file://") for uri in self.table.file_uris()]
        remote = [path for path in paths if not path.startswith("/")]
        if remote:
            raise UsageError(
                f"{self}: {remote[0]} is in an object store; only tables on a file system can be compared.",
                remedy="Compare where the warehouse is mounted.",
            )
        found = {path: _IN_PART.search(path) for path in paths}
        return {path: match[1] if match else "" for path, match in found.items()}

    @cached_property
    def types(self) -> dict[str, Any]:
        """Delta's type of each column that readers see."""
        fields = json.loads(self.table.schema().to_json())["fields"]
        return {field["name"]: field["type"] for field in fields if field["name"] != PART}

    def rows_of(self, files: Iterable[str]) -> str:
        """A relation of these files' rows in the table's own types, with `filename` and the part.

        The first, empty branch names every column: a file from before a column was added does not have it.
        """
        chosen = sorted(files)
        self._refuse_missing(chosen)
        kinds = {**{name: duck_type(kind) for name, kind in self.types.items()}, PART: "VARCHAR", "filename": "VARCHAR"}
        none = ", ".join(f"cast(null as {kind}) as {quoted(name)}" for name, kind in kinds.items())
        if not chosen:
            return f"(select {none} where false)"
        parts = ", ".join(f"{quoted(name)}: VARCHAR" for name in self.table.metadata().partition_columns)
        how = f"hive_types = {{{parts}}}" if parts else "hive_partitioning = false"
        names = ", ".join("'" + path.replace("'", "''") + "'" for path in chosen)
        read = f"select * from read_parquet([{names}], union_by_name = true, filename = true, {how})"
        typed = ", ".join(f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in kinds.items())
        return f"(select {typed} from (select {none} where false union all by name {read}))"

    def _refuse_missing(self, files: Iterable[str]) -> None:
        gone = [path for path in files if not Path(path).exists()]
        if gone:
            raise Retryable(
                f"{self}: {len(gone)} of its files are gone, {gone[0]} first: they were cleaned up.",
                remedy="Compare a newer position; a hold keeps the files while a comparison runs.",
            )

    def __str__(self) -> str:
        return f"{self.release} at version {self.version}"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
