"""Records read again from the broker, in a process of its own, tell which rows a late one accounts for."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.topics import STOCKS
from platform_core.archived.protocol import PROTOCOL, command
from platform_core.compare.explain import Rereading
from platform_core.compare.late import Taken
from platform_core.settings import ROOT
from platform_core.testing.script import START
from tests.conftest import Broker

pytestmark = pytest.mark.stack
BASE = int(START.timestamp() * 1000)


def ask(broker: Broker, price: str, second: int) -> None:
    value = json.dumps({"type": "ASK", "ticker": "MMM", "price": price, "size": 1}).encode()
    broker.produce(STOCKS.name, (b"MMM", value), at=BASE + second * 1000)


def rows(*counted: tuple[int, str, int, str]) -> pa.Table:
    """Number, side, count and sum of the first window."""
    start = START.replace(tzinfo=None)
    return pa.Table.from_pylist(
        [
            {
                "number": number,
                "side": side,
                "kind": "changed",
                "ticker": "MMM",
                "window_start": start,
                "window_end": start + timedelta(seconds=5),
                "trade_count": count,
                "sum_price": Decimal(total),
            }
            for number, side, count, total in counted
        ],
        schema=pa.schema(
            [
                ("number", pa.int64()),
                *((name, pa.string()) for name in ("side", "kind", "ticker")),
                ("window_start", pa.timestamp("us")),
                ("window_end", pa.timestamp("us")),
                ("trade_count", pa.int64()),
                ("sum_price", pa.decimal128(28, 6)),
            ]
        ),
    )


def test_a_late_trade_explains_the_row_that_it_is_missing_in_and_no_wrong_one(broker: Broker, tmp_path: Path) -> None:
    broker.create(STOCKS.name, 1)
    for price, second in (("10", 0), ("99", 60), ("20", 2)):
        ask(broker, price, second)
    whole, first = {STOCKS.name: {0: 3}}, {STOCKS.name: {0: 2}}
    batches = {
        "left": [Taken({}, whole, 0, 0)],
        "right": [Taken({}, first, 0, 0), Taken(first, whole, BASE + 50_000, BASE + 60_000)],
    }
    environment = {**broker.settings.child_environment(), "PYTHONPATH": str(ROOT)}
    log = tmp_path / "compare.log"
    asking = Rereading("stock_stats", command(sys.executable, PROTOCOL, "explain"), environment, tmp_path, log)
    late = rows((1, "left", 2, "30"), (1, "right", 1, "10"), (2, "left", 2, "31"), (2, "right", 1, "10"))
    assert asking.late(late, batches) == [1], log.read_text()[-3000:]


def test_when_records_cannot_be_read_again_nothing_is_explained(tmp_path: Path) -> None:
    asking = Rereading("stock_stats", [sys.executable, "-c", "raise SystemExit(3)"], {}, tmp_path, tmp_path / "log")
    batches = {side: [Taken({}, {"stocks": {0: 3}}, 0, 0)] for side in ("left", "right")}
    assert asking.late(rows((1, "left", 2, "30")), batches) == []
