"""One SQL query over the live tables."""

from __future__ import annotations

import re

import duckdb

from platform_core.errors import UsageError
from platform_core.read.answer import Answer
from platform_core.read.engine import Engine
from platform_core.read.tables import LiveTable, Tables, open_tables
from platform_core.settings import Settings


def sql(settings: Settings, query: str, limit: int = 1000, seconds: float = 10.0, client: str | None = None) -> Answer:
    """Reads; anything else is refused. At most `limit` rows within `seconds`; a `client` reads what it is bound to."""
    tables = open_tables(settings, client=client)
    try:
        with Engine(_named_in(query, tables)) as engine:
            _refuse_unless_one_select(engine, query)
            return engine.answer(query, limit, seconds)
    except duckdb.CatalogException as error:
        known = ", ".join(sorted(tables)) or "none yet; start a job with `weir start`"
        raise UsageError(f"{_first_line(error)}.", remedy=f"Tables: {known}.") from error
    except duckdb.PermissionException as error:
        raise UsageError(
            f"{_first_line(error)}.", remedy="Query the live tables; files cannot be read here."
        ) from error
    except duckdb.Error as error:
        raise UsageError(f"{error}", remedy="Correct the query.") from error


def _named_in(query: str, tables: Tables) -> list[LiveTable]:
    """The tables whose names stand in the query; all for one that asks what there is."""
    words = set(re.findall(r"\w+", query.lower()))
    named = [table for name, table in tables.items() if name in words]
    return named or ([table for table in tables.values() if table.place.has_table()] if "show" in words else [])


def _refuse_unless_one_select(engine: Engine, query: str) -> None:
    """The connection may write where it may read, so what could write must not reach it."""
    kinds = [statement.type.name for statement in engine.statements(query)]
    if kinds != ["SELECT"]:
        came = " and ".join(kinds) or "nothing"
        raise UsageError(f"One SELECT is answered here; {came} came.", remedy="Write one SELECT statement.")


def _first_line(error: duckdb.Error) -> str:
    return str(error).splitlines()[0].rstrip(".")
