"""The live tables as Arrow, pandas and Spark read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from platform_core.control import aliases, clients
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.names import PART, ReleaseId
from platform_core.settings import Settings
from platform_core.storage import Place

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class LiveTable:
    """A table, pinned to the version that was the newest when it was first read."""

    name: str
    place: Place
    release: ReleaseId | None = None  # None: not the output of one release, as daily tables and rejects

    @cached_property
    def delta(self) -> DeltaTable:
        from deltalake.exceptions import TableNotFoundError

        try:
            return self.place.table()
        except TableNotFoundError as error:
            who = f"its live release {self.release}" if self.release else "the platform"
            raise ServiceUnavailable(
                f"Table {self.name!r}: {who} has written nothing yet to {self.place}.",
                remedy="See `weir status`; read again once something was written.",
            ) from error

    @property
    def version(self) -> int:
        return self.delta.version()

    @property
    def columns(self) -> list[str]:
        return [field.name for field in self.delta.schema().fields if field.name != PART]

    def arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """The rows for which `filter` holds, an expression such as `pc.field("ticker") == "MMM"`."""
        chosen = self.columns if columns is None else self._known(columns)
        return self.delta.to_pyarrow_dataset().to_table(columns=chosen, filter=filter)

    def pandas(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pd.DataFrame:
        return self.arrow(columns, filter).to_pandas()

    def spark(self, session: SparkSession) -> DataFrame:
        return session.read.format("delta").option("versionAsOf", self.version).load(self.place.uri).drop(PART)

    def position(self) -> Position | None:
        """Where its release stood when it wrote this version; None before its first batch."""
        from platform_core.tables.history import commits

        for commit in commits(self.place, 50, until=self.version):  # those of maintenance carry none
            if "userMetadata" in commit:
                return Position.from_json(commit["userMetadata"])
        return None

    def _known(self, columns: Sequence[str]) -> list[str]:
        for name in columns:
            if name not in self.columns:
                raise UsageError(
                    f"Table {self.name!r} has no column {name!r}.", remedy=f"Choose from {', '.join(self.columns)}."
                )
        return list(columns)


class Tables(Mapping[str, LiveTable]):
    """All tables as of one moment: the live ones of jobs, their rejects, and daily tables."""

    def __init__(self, tables: Mapping[str, LiveTable]) -> None:
        self._tables = tables

    def table(self, name: str) -> LiveTable:
        if name not in self._tables:
            known = ", ".join(sorted(self._tables)) or "none yet; start a job with `weir start`"
            raise UsageError(f"There is no table {name!r}.", remedy=f"Tables: {known}.")
        return self._tables[name]

    def __getitem__(self, name: str) -> LiveTable:
        return self._tables[name]

    def __iter__(self) -> Any:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def open_tables(settings: Settings, store: ControlStore | None = None, client: str | None = None) -> Tables:
    """Resolves the aliases in one transaction; `store` saves a connection where there is one already.

    A `client` reads the releases that it is pinned to, and of other tables the live ones.
    """
    opened = store or ControlStore.open(settings)
    try:
        seen = _resolved(opened, client)
    finally:
        if store is None:
            opened.close()
    live = {table: LiveTable(table, settings.storage.table(release), release) for table, release in seen.items()}
    return Tables({**_daily(settings), **_rejects(settings, live.values()), **live})


def _resolved(store: ControlStore, client: str | None) -> dict[str, ReleaseId]:
    with store.transaction() as cursor:
        cursor.execute("set transaction isolation level repeatable read, read only")  # both tables as of one moment
        pinned = {} if client is None else clients.pins(cursor, client)
        return {**{table: alias.release for table, alias in aliases.read_all(cursor).items()}, **pinned}


def _daily(settings: Settings) -> dict[str, LiveTable]:
    """A daily table stands in the folder of its name."""
    names = [path.parent.name for path in (settings.root / "analytics").glob("*/table.py")]
    return {name: LiveTable(name, settings.storage.daily(name)) for name in names}


def _rejects(settings: Settings, live: Iterable[LiveTable]) -> dict[str, LiveTable]:
    """What each job refused, as `<job>_rejects`."""
    jobs = {table.release.job for table in live if table.release is not None}
    return {name: LiveTable(name, settings.storage.rejects(job)) for job in jobs for name in [f"{job}_rejects"]}
