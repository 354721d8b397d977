"""Rows of a live table by its key, or by the first columns of it."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from platform_core.control import releases
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.read.answer import Answer
from platform_core.read.engine import Engine, quoted
from platform_core.read.tables import LiveTable, open_tables
from platform_core.settings import Settings


def get(
    settings: Settings,
    table: str,
    key: Sequence[str],
    limit: int = 1000,
    seconds: float = 10.0,
    client: str | None = None,
) -> Answer:
    """The rows whose key begins with `key`, values as text in the order of the key's columns; at most `limit`.

    The last ones by the rest of the key come first: where that is a time, the newest.
    """
    store = ControlStore.open(settings)
    try:
        live = open_tables(settings, store, client).table(table)
        columns = _key_of(live, settings, store)
    finally:
        store.close()
    if not 1 <= len(key) <= len(columns):
        raise UsageError(
            f"Table {table!r} has the key ({', '.join(columns)}); {len(key)} values came.",
            remedy=f"Give it the first or all of them, as in `weir get {table} {' '.join(_example(columns))}`.",
        )
    with Engine([live]) as engine:
        return _matching(engine, live, dict(zip(columns, key, strict=False)), columns, (limit, seconds))


def _key_of(live: LiveTable, settings: Settings, store: ControlStore) -> list[str]:
    key = _declared(live, settings) if live.release is None else _frozen(live.release, store)
    if not key:
        raise UsageError(
            f"Table {live.name!r} has no key: its rows are appended.",
            remedy=f'Query it, as in `weir sql "select * from {live.name} where ..."`.',
        )
    return key


def _frozen(release: ReleaseId, store: ControlStore) -> list[str]:
    return list(releases.get(store, release).manifest["output"]["key"])


def _declared(live: LiveTable, settings: Settings) -> list[str]:
    """Of a daily table, as its module declares it; importing that takes a second. Rejects have none."""
    if live.place != settings.storage.daily(live.name):
        return []
    from platform_core.declare.discover import load_daily_tables

    return list(load_daily_tables(settings.root)[live.name].output.key)


def _matching(
    engine: Engine, live: LiveTable, values: dict[str, str], key: list[str], bounds: tuple[int, float]
) -> Answer:
    types = engine.types(live.name)
    where = " and ".join(f"{quoted(column)} = cast(? as {types[column]})" for column in values)
    order = ", ".join(f"{quoted(column)} desc" for column in key)
    try:
        asked = f"select * from {quoted(live.name)} where {where} order by {order}"
        return engine.answer(asked, *bounds, list(values.values()))
    except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
        wanted = ", ".join(f"{column} {types[column]}" for column in values)
        came = ", ".join(repr(value) for value in values.values())
        raise UsageError(
            f"{came} is not a key of table {live.name!r}, which is ({wanted}).",
            remedy="Write times as '2026-01-31 12:00:05', in UTC.",
        ) from error


def _example(columns: list[str]) -> list[str]:
    return [column.upper() for column in columns]
