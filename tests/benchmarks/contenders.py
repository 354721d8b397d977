"""`python -m tests.benchmarks.contenders NAME KEPT LEFT RIGHT`: one way to compare two tables, and its seconds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path

from deltalake import DeltaTable

from platform_core.names import PART
from platform_core.storage import Place

KEY = ["ticker", "window_start"]


def weir(kept: str, left: str, right: str) -> float:
    from platform_core.compare import Side, compare

    began = time.monotonic()
    sides = [
        Side(f"job@v{number}", Place(uri), DeltaTable(uri).version(), layout="hours")
        for number, uri in enumerate((left, right), 1)
    ]
    found = compare(sides[0], sides[1], KEY, folder=Path(kept))
    if found.rows_left >= 100_000 and found.differing != found.rows_left // 100_000:  # one of so many was changed
        raise SystemExit(f"It found {found.differing} of {found.rows_left // 100_000} differing rows.")
    return time.monotonic() - began


def polars(_: str, left: str, right: str) -> float:
    import polars as pl
    from datacompy import PolarsCompare

    began = time.monotonic()
    frames = [pl.DataFrame(DeltaTable(uri).to_pyarrow_table()).drop(PART) for uri in (left, right)]
    found = PolarsCompare(frames[0], frames[1], KEY)
    _refuse_blind(not found.matches())
    return time.monotonic() - began


def pandas(_: str, left: str, right: str) -> float:
    from datacompy import PandasCompare

    began = time.monotonic()
    frames = [DeltaTable(uri).to_pyarrow_table().drop_columns([PART]).to_pandas() for uri in (left, right)]
    found = PandasCompare(frames[0], frames[1], KEY)
    _refuse_blind(not found.matches())
    return time.monotonic() - began


def spark(_: str, left: str, right: str) -> float:
    from pyspark.sql import functions as F

    from platform_core.settings import load
    from platform_core.streaming.driver.session import session

    running = session(load(), "compare", **{"spark.driver.memory": "2g"})
    running.range(1).count()
    began = time.monotonic()
    one, other = (running.read.format("delta").load(uri).drop(PART) for uri in (left, right))
    rest = [name for name in one.columns if name not in KEY]
    same = [F.col(f"l.{name}").eqNullSafe(F.col(f"r.{name}")) for name in KEY]
    unlike = reduce(or_, (~F.col(f"l.{name}").eqNullSafe(F.col(f"r.{name}")) for name in rest))
    _refuse_blind(one.alias("l").join(other.alias("r"), same, "full").where(unlike).count())
    return time.monotonic() - began


def _refuse_blind(differing: object) -> None:
    if not differing:
        raise SystemExit("It found no difference.")


CONTENDERS: dict[str, Callable[[str, str, str], float]] = {
    "weir": weir,
    "polars": polars,
    "pandas": pandas,
    "spark": spark,
}


if __name__ == "__main__":
    print(json.dumps({"seconds": CONTENDERS[sys.argv[1]](*sys.argv[2:])}))
