"""What a comparison leaves for the next one of the same two releases."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb

TABLES = ("figures", "differences")


class SavedComparisons:
    """A folder that is there as a whole or not at all."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._duck, self._folder = duck, folder

    def recall(self) -> None:
        """Fills the tables from the last time, if there was one."""
        if not self._folder.is_dir():
            return
        for table in TABLES:
            self._duck.execute(
                f"insert into {table} select * from read_parquet(?)", [str(self._folder / f"{table}.parquet")]
            )

    def keep(self) -> None:
        unfinished = self._folder.with_name(f"{self._folder.name}.{os.getpid()}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for table in TABLES:
            place = str(unfinished / f"{table}.parquet").replace("'", "''")
            self._duck.execute(f"copy {table} to '{place}' (format parquet)")
        old = self._folder.with_name(f"{self._folder.name}.{os.getpid()}.old")
        if self._folder.is_dir():
            self._folder.rename(old)
        unfinished.rename(self._folder)
        shutil.rmtree(old, ignore_errors=True)
