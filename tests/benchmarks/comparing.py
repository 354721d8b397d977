"""Two tables of ten million rows compared and compared again, beside datacompy and beside a join in Spark."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from platform_core.compare import Side, compare
from platform_core.settings import ROOT
from platform_core.storage import Place
from tests.benchmarks.asked import Asked
from tests.benchmarks.contenders import KEY
from tests.benchmarks.figures import Figure
from tests.benchmarks.platform import settings_of

NOTES = (
    "Compare: two Delta tables of the columns of stock_stats, a file an hour, that differ in one row of 100,000. Each "
    "contender runs in a process of its own; imports and the start of a Spark session are not counted, reading the "
    "tables is. datacompy gets them as Polars frames, its faster form, and in pandas a tenth of the rows: ten times "
    "what that took stands there, as decimals of ten million rows do not fit into memory.",
    "Again: a thousand rows more on both sides, in the newest hour, after a first comparison.",
)
ROWS = 10_000_000
_BATCH = 500_000
_DIFFERS = 100_000  # one row of so many
_SECONDS = 3600


def measure(asked: Asked) -> list[Figure]:
    rows = ROWS // 10 if asked.quick else ROWS
    asked.say(f"writing two tables of {rows:,} rows")
    sides = [_written(asked.work / name, rows, each) for name, each in (("left", None), ("right", _DIFFERS))]
    times = {name: _timed(asked, name, sides) for name in ("weir", "polars", "spark")}
    small = [_written(asked.work / f"{side.name}-small", rows // 10, None) for side in sides[:1]]
    small.append(_written(asked.work / "right-small", rows // 10, _DIFFERS))
    times["pandas"] = [10 * seconds for seconds in _timed(asked, "pandas", small)]
    for side in sides:
        _append(side, rows, rows + 1000)
    times["again"] = _timed(asked, "weir", sides)
    asked.say("one differing row")
    other = _written(asked.work / "one", rows, rows)
    _append(other, rows, rows + 1000)
    left, right = (Side(one.name, Place(str(one)), 1, layout="hours") for one in (sides[0], other))
    found = compare(left, right, KEY, folder=asked.work)
    of = f"compare {rows:,} rows"
    figures = [*_figures(of, times, None if asked.quick else 10)]
    return [*figures, Figure(of, "one row changed in one column: found", found.differing, "", at_least=1, at_most=1)]


def _figures(of: str, times: dict[str, list[float]], faster: float | None) -> list[Figure]:
    """`faster`: the second one; of few rows both take what opening the tables takes."""
    first, again = times["weir"], times["again"]
    figures = [Figure(of, "weir", *_first(first), "s"), Figure(of, "weir, again", *_first(again), "s")]
    figures.append(Figure(of, "first / again", _ratio(first, again), "", at_least=faster))
    names = {"polars": "datacompy, Polars", "pandas": "datacompy, pandas (scaled)", "spark": "Spark full outer join"}
    targets = {"polars": 5.0, "pandas": 5.0, "spark": None}
    for key, name in names.items():
        note = "" if times[key] else "not installed, or it did not end"
        figures.append(Figure(of, name, *_first(times[key]), "s", note=note))
        ratio = _ratio(times[key], first)
        figures.append(Figure(of, f"{name} / weir", ratio, "", at_least=targets[key], note=note))
    return figures


def _first(times: list[float]) -> tuple[float | None]:
    return (times[0] if times else None,)


def _ratio(one: list[float], other: list[float]) -> float | None:
    return one[0] / other[0] if one and other else None


def _timed(asked: Asked, contender: str, sides: list[Path]) -> list[float]:
    """Seconds; none where it is not installed or did not end."""
    if contender in ("polars", "pandas") and importlib.util.find_spec("datacompy") is None:
        return []
    asked.say(f"comparing by {contender}")
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.contenders",
        contender,
        str(asked.work / "kept"),
        *map(str, sides),
    ]
    env = settings_of(asked.work / "spark").child_environment() | {"PYTHONPATH": str(ROOT)}
    try:
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return []
    if ran.returncode != 0:
        print("\n".join(ran.stderr.splitlines()[-3:]), file=sys.stderr)
        return []
    return [json.loads(ran.stdout.splitlines()[-1])["seconds"]]


def _written(folder: Path, rows: int, differs: int | None) -> Path:
    """`differs`: one row of so many."""
    columns = _rows(0, rows, differs)
    write_deltalake(str(folder), columns, partition_by=["_part"])
    return folder


def _append(folder: Path, start: int, end: int) -> None:
    write_deltalake(str(folder), _rows(start, end, None), mode="append")


def _rows(start: int, end: int, differs: int | None) -> pa.RecordBatchReader:
    """Ten tickers a second; the same numbers every time."""
    second = "(1767225600000000 + (i // 10) * 1000000)"
    wrong = f"+ cast(i % {differs} = 4711 as int) * 0.000001" if differs else ""
    query = f"""
        select 'T' || cast(i % 10 as varchar) as ticker, make_timestamptz({second}) as window_start,
          make_timestamptz({second} + 5000000) as window_end, (i * 7919) % 97 as trade_count,
          cast((i * 104729) % 1000000000 / 1000 as decimal(28, 6)) as sum_price,
          cast((i * 1299709) % 10000000 / 1000 as decimal(18, 6)) as min_price,
          cast(cast((i * 15485863) % 10000000 / 777 as decimal(18, 6)) {wrong} as decimal(18, 6)) as avg_price,
          strftime(make_timestamp({second}), '%Y-%m-%dT%H') as _part
        from range({start}, {end}) t(i)"""
    made = duckdb.connect(config={"threads": "2"}).sql(query).to_arrow_reader(_BATCH)
    return pa.RecordBatchReader.from_batches(made.schema, _batches(made))


def _batches(made: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    yield from made
