"""DuckDB over live tables: reads their files and nothing else, writes nothing, within bounds of rows and time."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from platform_core.errors import UsageError
from platform_core.names import PART
from platform_core.read.answer import Answer, AnsweredFrom
from platform_core.read.tables import LiveTable

_MEMORY = "1GB"
_PLAIN = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_UNREAD_FEATURES = {"deletionVectors", "columnMapping"}  # a reader of bare Parquet files would show wrong rows


class Engine:
    """One connection for one call, with a view for each table."""

    def __init__(self, tables: Iterable[LiveTable]) -> None:
        self._tables = list(tables)
        self._connection = duckdb.connect(":memory:", config={"memory_limit": _MEMORY, "temp_directory": ""})
        self._datasets: dict[str, object] = {}
        sources = [(table, self._source(table)) for table in self._tables]
        self._lock()
        for table, source in sources:
            self._connection.execute(f"create view {quoted(table.name)} as select {_columns(table)} from {source}")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        shown = self._connection.execute(f"describe {quoted(table)}").fetchall()
        return {str(row[0]): str(row[1]) for row in shown}

    def statements(self, query: str) -> list[duckdb.Statement]:
        return self._connection.extract_statements(query)

    def answer(self, query: str, limit: int, seconds: float, values: Sequence[str] = ()) -> Answer:
        """At most `limit` rows; UsageError when the time is over or the query takes too much memory."""
        timer = threading.Timer(seconds, self._connection.interrupt)
        timer.start()
        with self._ctrl_c() as pressed:
            try:
                result = self._connection.execute(query, list(values))
                rows = result.fetchmany(limit + 1)
                described: Any = result.description or []
            except duckdb.InterruptException as error:
                if pressed:
                    raise KeyboardInterrupt from error
                raise UsageError(
                    f"The query did not end within {seconds:g} s.",
                    remedy="Narrow it, or give it longer with --seconds.",
                ) from error
            except duckdb.OutOfMemoryException as error:
                raise UsageError(f"The query needs more than {_MEMORY} of memory.", remedy="Narrow it.") from error
            finally:
                timer.cancel()
        return Answer(
            columns=tuple(column[0] for column in described),
            types=tuple(str(column[1]) for column in described),
            rows=rows[:limit],
            truncated=len(rows) > limit,
            sources={table.name: _told(table) for table in self._tables},
        )

    @contextmanager
    def _ctrl_c(self) -> Generator[list[int]]:
        """Interrupts the query. Python's own handler raises an exception, which DuckDB passes on only once its threads
        have come to an end by themselves: minutes later."""
        pressed: list[int] = []
        if threading.current_thread() is not threading.main_thread():
            yield pressed
            return

        def interrupt(number: int, _: object) -> None:
            pressed.append(number)
            self._connection.interrupt()

        former = signal.signal(signal.SIGINT, interrupt)
        try:
            yield pressed
        finally:
            signal.signal(signal.SIGINT, former)

    def _source(self, table: LiveTable) -> str:
        """What a view selects from; names the files that the connection may read."""
        files = table.place.files(table.delta)
        if not files:
            return f"(select {_no_row(table)} where false)"
        if not _plain(table):
            return self._dataset(table)
        names = ", ".join(_text(name) for name in files)
        parts = ", ".join(f"{quoted(name)}: VARCHAR" for name in table.delta.metadata().partition_columns)
        how = f"hive_types = {{{parts}}}" if parts else "hive_partitioning = false"
        self._connection.execute(f"set allowed_paths = list_concat(current_setting('allowed_paths'), [{names}])")
        return f"read_parquet([{names}], union_by_name = true, {how})"

    def _dataset(self, table: LiveTable) -> str:
        """Through Arrow, for object stores and tables whose files alone do not tell; importing it takes a second."""
        self._datasets[table.name] = table.delta.to_pyarrow_dataset()
        name = f"{table.name}.files"
        self._connection.register(name, self._datasets[table.name])
        return quoted(name)

    def _lock(self) -> None:
        """Files of the tables alone, no variable of this process, no extension, and none of this to be changed."""
        for setting in (
            "TimeZone = 'UTC'",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"set {setting}")


def _told(table: LiveTable) -> AnsweredFrom:
    return AnsweredFrom(str(table.release) if table.release else None, table.version)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _plain(table: LiveTable) -> bool:
    protocol = table.delta.protocol()
    features = set(protocol.reader_features or ())
    return table.place.path is not None and protocol.min_reader_version != 2 and not features & _UNREAD_FEATURES


def _fields(table: LiveTable) -> list[dict[str, Any]]:
    return [field for field in json.loads(table.delta.schema().to_json())["fields"] if field["name"] != PART]


def _columns(table: LiveTable) -> str:
    """Cast, since Spark writes timestamps in a form that carries no zone, and folder names carry no type."""
    return ", ".join(_cast(quoted(field["name"]), field) for field in _fields(table))


def _no_row(table: LiveTable) -> str:
    return ", ".join(_cast("null", field) for field in _fields(table))


def _cast(value: str, field: dict[str, Any]) -> str:
    return f"cast({value} as {duck_type(field['type'])}) as {quoted(field['name'])}"


def duck_type(kind: Any) -> str:
    """A Delta type as DuckDB names it."""
    if isinstance(kind, str):
        return _PLAIN.get(kind, kind)  # decimal(p,s) is the same in both
    if kind["type"] == "array":
        return f"{duck_type(kind['elementType'])}[]"
    if kind["type"] == "map":
        return f"MAP({duck_type(kind['keyType'])}, {duck_type(kind['valueType'])})"
    parts = ", ".join(f"{quoted(field['name'])} {duck_type(field['type'])}" for field in kind["fields"])
    return f"STRUCT({parts})"
