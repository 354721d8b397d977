"""What each row of a batch does to its table, in a column beside the row's own; without it all rows are upserts.

A row that is inserted or updated is what its key says from then on; of one that is deleted only the key and the part
count. So a batch that is repeated leaves the same table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute

from platform_core.names import CHANGE

pc: Any = pyarrow.compute  # its functions are made at import, where no type checker sees them


class ChangeType(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def upserted(rows: pa.Table) -> pa.Table:
    """The rows that stand in the table afterwards, without the column."""
    return rows if CHANGE not in rows.column_names else _those(rows, pc.invert(_is_deleted(rows)))


def deleted(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 0) if CHANGE not in rows.column_names else _those(rows, _is_deleted(rows))


def _is_deleted(rows: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(rows[CHANGE], ChangeType.DELETE.value), False)


def _those(rows: pa.Table, chosen: pa.ChunkedArray) -> pa.Table:
    return rows.filter(chosen).drop_columns([CHANGE])
