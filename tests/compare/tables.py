"""Two small tables to compare, and words for what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from platform_core.compare import Comparison, Explain, Side, compare
from platform_core.names import PART
from platform_core.storage import Place

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
Row = dict[str, Any]
STATS = pa.schema(
    [
        ("ticker", pa.string()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("trade_count", pa.int64()),
        ("avg_price", pa.decimal128(18, 6)),
        (PART, pa.string()),
    ]
)
KEY = ("ticker", "window_start")


def stat(ticker: str, second: int = 0, count: int = 1, price: str = "10") -> Row:
    start = NOON + timedelta(seconds=second)
    part = start.strftime("%Y-%m-%dT%H")
    return {"ticker": ticker, "window_start": start, "trade_count": count, "avg_price": Decimal(price), PART: part}


def many(rows: int) -> list[Row]:
    return [stat(f"T{at % 10}", second=at // 10, count=at, price=str(at)) for at in range(rows)]


class Far(Place):
    """A place on this machine that is reached as one in an object store is."""

    def __post_init__(self) -> None:
        """It stays a URI."""

    @property
    def path(self) -> None:
        return None


class Tables:
    """Writes tables under a folder and compares them; what a comparison keeps stays there too."""

    def __init__(self, folder: Path, *, far: bool = False) -> None:
        self.folder, self._far = folder, far

    def place(self, number: int) -> Place:
        return Far(f"file://{self.uri(number)}") if self._far else Place(self.uri(number))

    def uri(self, number: int) -> str:
        return str(self.folder / "warehouse" / f"v{number}")

    def write(self, number: int, rows: Sequence[Row], schema: pa.Schema = STATS, **how: Any) -> Side:
        """Appends rows to the table of that release."""
        table = pa.Table.from_pylist(list(rows), schema=schema)
        parts = [PART] if PART in table.column_names else None
        write_deltalake(self.uri(number), table, mode=how.pop("mode", "append"), partition_by=parts, **how)
        return self.side(number)

    def side(self, number: int, version: int | None = None, layout: str = "hours") -> Side:
        at = DeltaTable(self.uri(number)).version() if version is None else version
        return Side(f"stats@v{number}", self.place(number), at, layout=layout)

    def compare(
        self,
        left: Side,
        right: Side,
        key: Sequence[str] = KEY,
        expect: Mapping[str, str] | None = None,
        explain: Explain | None = None,
    ) -> Comparison:
        return compare(left, right, key, folder=self.folder / "kept", expect=expect, explain=explain)

    def of(
        self,
        left: Sequence[Row],
        right: Sequence[Row],
        schema: pa.Schema = STATS,
        key: Sequence[str] = KEY,
        **expect: str,
    ) -> Comparison:
        """The two as fresh tables."""
        return self.compare(self.write(1, left, schema), self.write(2, right, schema), key, expect)


def counts(found: Comparison) -> tuple[int, ...]:
    """Keys only on the left, only on the right, changed."""
    return tuple(count.found for count in found.counts.values())


def changed(found: Comparison) -> Mapping[str, int]:
    return {column.name: column.changed for column in found.columns if column.changed}
