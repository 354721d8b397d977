"""The control store on Postgres: connections, transactions and the schema. What stands in it, the other modules say."""

from __future__ import annotations

import select
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg.rows import DictRow, dict_row

from platform_core.control.schema import STATEMENTS
from platform_core.errors import ServiceUnavailable, SettingsError, SetupError, WeirError

if TYPE_CHECKING:
    from platform_core.settings import Settings

Cursor = psycopg.Cursor[DictRow]
Connection = psycopg.Connection[DictRow]

_NOT_MIGRATED = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName)
_KEPT = 4  # idle connections; a driver uses three threads
_LIMITS: LiteralString = (
    # A process that was stopped inside a transaction would hold its row locks for ever; Postgres ends it after 10 s.
    "-c idle_in_transaction_session_timeout=10s -c statement_timeout=30s -c lock_timeout=10s"
)


class ControlStore:
    """Hands out transactions. Opening connects nothing; a server that is away costs its caller one quick, clear error.

    psycopg_pool is not used: it retries in the background with a growing pause, so that after a minute's outage a
    caller waits up to another minute, and its error hides why the server could not be reached.
    """

    def __init__(self, where: dict[str, Any]) -> None:
        self._where = where
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    @classmethod
    def open(cls, settings: Settings) -> ControlStore:
        at = settings.postgres
        return cls(
            {
                "host": at.host,
                "port": at.port,
                "user": at.user,
                "dbname": at.database,
                "password": settings.password(),
            }
        )

    @contextmanager
    def transaction(self) -> Generator[Cursor]:
        """All or nothing. Raises ServiceUnavailable when the server does not answer; whether a commit in flight took
        effect is then unknown, so what is written must be safe to write twice."""
        with self._explained():
            connection = self._take()
            try:
                with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
                    yield cursor
            finally:
                self._give_back(connection)

    def migrate(self) -> None:
        """Creates what is missing; safe to call at any time, by several at once."""
        try:
            self._create()
        except psycopg.errors.UniqueViolation:
            # a session may have cached that there is no schema before it waited for the one that created it
            self._create()

    def _create(self) -> None:
        with self.transaction() as cursor:
            cursor.execute("set local lock_timeout = '60s'")
            cursor.execute("select pg_advisory_xact_lock(hashtext('weir.migrate'))")
            for statement in STATEMENTS:
                cursor.execute(statement)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if _usable(connection):
                return connection
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not connection.closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> Connection:
        return psycopg.Connection[DictRow].connect(
            row_factory=dict_row,
            **self._where,
            autocommit=True,
            connect_timeout=5,
            application_name="weir",
            options=f"{_LIMITS} -c timezone=UTC -c client_min_messages=warning",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=15_000,
        )

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
            raise self._what_failed(error) from error
        except _NOT_MIGRATED as error:
            raise SetupError(
                f"Control store {self.place}: {_first_line(error)}.",
                remedy="Run `weir up`, which creates what this version needs.",
            ) from error

    def _what_failed(self, error: psycopg.Error) -> WeirError:
        what = f"Control store {self.place}: {_first_line(error)}."
        if "authentication failed" in str(error):  # before a session exists libpq gives no SQLSTATE, only this text
            return SettingsError(what, remedy="Correct postgres.user or the file postgres.password_file.")
        return ServiceUnavailable(what, remedy="Start it with `weir up`, or see logs/postgres.log; it is tried again.")

    @property
    def place(self) -> str:
        return f"{self._where['host']}:{self._where['port']}/{self._where['dbname']}"


def _usable(connection: Connection) -> bool:
    """An idle connection with something to read has been closed by its server."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _first_line(error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
