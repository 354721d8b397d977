"""weir sql and weir get on real tables, resolved in a real control store."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from platform_core.settings import ROOT
from tests.cli.conftest import Weir
from tests.control.words import until
from tests.read.conftest import Publish, stats

pytestmark = pytest.mark.stack
KEY = ("ticker", "window_start")


def test_sql_prints_rows_to_stdout_and_words_to_stderr(weir: Weir, publish: Publish) -> None:
    release = publish("stock_stats", stats("MMM", "ABT", windows=1), KEY)
    ran = weir("sql", "select ticker, avg_price from stock_stats order by ticker")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "ticker    avg_price",
        "------  -----------",
        "ABT     5000.000001",
        "MMM     5000.000001",
    ]
    assert ran.err == f"2 rows from stock_stats ({release}, version 0)\n"


def test_sql_gives_json(weir: Weir, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", windows=1), KEY)
    ran = weir("sql", "--json", "select * from stock_stats")
    assert ran.json == [
        {"ticker": "MMM", "window_start": "2026-01-31T12:00:00Z", "trade_count": 0, "avg_price": "5000.000001"}
    ]


def test_a_client_reads_what_it_is_bound_to(weir: Weir, publish: Publish) -> None:
    first = publish("stock_stats", stats("MMM", windows=1), KEY)
    bound = weir("client", "bind", "month_end", "stock_stats", "--to", "v1")
    assert bound.out == f"month_end: reads stock_stats from {first}\n"
    publish("stock_stats", stats("MMM", windows=2), KEY)
    count = "select count(*) as n from stock_stats"
    assert weir("sql", "--json", "--client", "month_end", count).json == [{"n": 1}]
    assert weir("sql", "--json", count).json == [{"n": 2}]
    assert [line["release"] for line in weir("client", "list", "--json").json] == [str(first)]
    assert weir("client", "unbind", "month_end").code == 0
    assert weir("sql", "--json", "--client", "month_end", count).code == 64


def test_get_gives_the_rows_of_a_key(weir: Weir, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", "ABT"), KEY)
    assert [row["trade_count"] for row in weir("get", "--json", "stock_stats", "MMM").json] == [2, 1, 0]
    assert weir("get", "--json", "stock_stats", "MMM", "2026-01-31 12:00:02").json[0]["trade_count"] == 2
    bounded = weir("get", "--json", "--limit", "1", "stock_stats", "MMM")
    assert len(bounded.json) == 1
    assert bounded.json[0]["trade_count"] == 2
    assert "There are more than 1 rows. Show more with --limit, or all with --all." in bounded.err


def test_get_gives_the_newest_twenty_rows_or_all(weir: Weir, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", windows=30), KEY)
    newest = weir("get", "--json", "stock_stats", "MMM").json
    assert [row["window_start"] for row in newest] == [f"2026-01-31T12:00:{second:02}Z" for second in range(29, 9, -1)]
    assert len(weir("get", "--json", "--all", "stock_stats", "MMM").json) == 30


@pytest.mark.timeout(600)
def test_ctrl_c_ends_a_query_with_130_and_one_line(weir: Weir, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    endless = "select sum(range) from range(1000000000000)"
    command = [sys.executable, "-m", "platform_core.cli", "sql", "--seconds", "500", endless]
    environment = {**weir.environment, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, cwd=weir.folder, stderr=subprocess.PIPE, text=True) as asked:
        until(lambda: sum(psutil.Process(asked.pid).cpu_times()[:2]) > 3, 240)  # to start takes less than one
        asked.send_signal(signal.SIGINT)
        _, said = asked.communicate(timeout=240)
    assert (asked.returncode, said.strip()) == (130, "interrupted")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("get", "stocks", "MMM"), 64, "error: There is no table 'stocks'.\nTables: daily_prices, stock_stats, "),
        (("sql", "select * from read_csv('/etc/passwd')"), 64, "file system operations are disabled"),
        (("sql", "drop view stock_stats"), 64, "One SELECT is answered here; DROP came."),
        (("sql", "selec"), 64, "syntax error"),
        (("sql", "--seconds", "0.2", "select count(*) from range(100000000) a, range(100000) b"), 64, "within 0.2 s"),
    ],
)
def test_a_refusal_is_told_in_a_sentence(
    weir: Weir, publish: Publish, words: tuple[str, ...], code: int, says: str
) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    ran = weir(*words)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "Traceback" not in ran.err
