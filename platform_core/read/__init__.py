"""The live tables, for readers: whole, by SQL, by key. Starts no JVM.

    tables = open_tables(load())
    tables.table("stock_stats").pandas(columns=["ticker", "avg_price"])
    sql(load(), "select ticker, max(avg_price) from stock_stats group by ticker").records()
    get(load(), "stock_stats", ["MMM"]).rows

All tables that one call opens are resolved in one transaction: no reader sees one of a cutover's tables moved and
another not. A table that is open stays at its version.
"""

from platform_core.read.answer import Answer
from platform_core.read.lookup import get
from platform_core.read.query import sql
from platform_core.read.tables import LiveTable, Tables, open_tables

__all__ = ["Answer", "LiveTable", "Tables", "get", "open_tables", "sql"]
