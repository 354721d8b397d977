"""What the README says, done as a newcomer does it: the demo is started, looked at with its commands, and stopped."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.main import get_command

from ingest.topics import STOCKS
from platform_core.cli.app import app
from platform_core.declare.discover import load_daily_tables, load_jobs
from platform_core.services import ports
from platform_core.settings import ROOT
from platform_core.testing import END, Kit, at, record

README = (ROOT / "README.md").read_text()
SECONDS = 900


def blocks(language: str, under: str) -> list[str]:
    section = README.split(f"## {under}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.S)


def commands(under: str) -> list[str]:
    lines = [line for block in blocks("sh", under) for line in block.splitlines()]
    return [line for line in lines if line.strip()]


def test_every_make_target_that_it_names_exists() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {shlex.split(line, comments=True)[1] for line in commands("Run it")}
    assert named
    assert named <= known


def test_every_weir_command_that_it_shows_exists() -> None:
    shown = {shlex.split(line, comments=True)[1] for line in commands("See it") + commands("Change what runs")}
    known = set(get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]
    assert {"plan", "cutover", "rollback"} <= shown
    assert shown <= known


PAGES = [ROOT / "README.md", ROOT / "tests" / "README.md", *sorted((ROOT / "infra").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    missing = [path for path in re.findall(r"\]\(([^)#:]+)\)", page.read_text()) if not (page.parent / path).exists()]
    assert missing == []


def test_the_table_of_patterns_has_every_job_and_daily_table() -> None:
    section = README.split("## Patterns\n")[1].split("\n## ")[0]
    linked = set(re.findall(r"\]\((?:streaming_jobs|analytics)/(\w+)/", section))
    assert linked == {*load_jobs(ROOT), *load_daily_tables(ROOT)}


def test_the_job_it_shows_finds_the_highest_ask_of_a_minute(kit: Kit) -> None:
    (shown,) = blocks("python", "Change it")
    names: dict[str, Any] = {}
    exec(compile(shown, "README.md", "exec"), names)
    trades = [
        record(STOCKS, key="MMM", value={"type": kind, "ticker": "MMM", "price": price, "size": 1}, second=second)
        for kind, price, second in (("ASK", 10, 1), ("ASK", 12, 2), ("BID", 99, 3), ("ASK", 11, 61))
    ]
    found = kit.run(names["highest_asks"], [*trades, END])
    assert found.columns("ticker", "minute", "highest") == [("MMM", at(0), Decimal(12)), ("MMM", at(60), Decimal(11))]


class Demo:
    """`make demo` on ports and in a folder of its own."""

    def __init__(self, home: Path) -> None:
        broker, _, database, page = ports.free(4)
        self.environment = {
            **{key: text for key, text in os.environ.items() if not key.startswith("WEIR_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "WEIR_HOME": str(home),
            "WEIR_KAFKA__PORT": str(broker),
            "WEIR_POSTGRES__PORT": str(database),
            "WEIR_DAGSTER__PORT": str(page),
        }
        self.home, self.said = home, ""
        self.ready = threading.Event()
        self.process = subprocess.Popen(
            ["make", "demo"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "ctrl-C stops everything" in line:
                self.ready.set()
        self.ready.set()  # it has ended, for good or bad

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )

    def interrupt(self) -> int:
        """As a terminal's ctrl-C does: to the whole group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(120)

    def left(self) -> list[str]:
        """Processes that still know of this home."""
        return [f"{one.pid} {one.info['cmdline']}" for one in psutil.process_iter(["cmdline"]) if self._ours(one)]

    def _ours(self, one: psutil.Process) -> bool:
        try:
            return one.environ().get("WEIR_HOME") == str(self.home)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    running = Demo(tmp_path_factory.mktemp("demo"))
    try:
        assert running.ready.wait(SECONDS)
        assert running.process.poll() is None, running.said
        yield running
    finally:
        running.interrupt()


@pytest.mark.stack
@pytest.mark.timeout(1200)
class TestDemo:
    def test_the_demo_shows_results_of_every_job_and_where_to_look(self, demo: Demo) -> None:
        for told in ("table stock_stats", "table word_count", "table user_activity", "Dagster"):
            assert told in demo.said

    @pytest.mark.parametrize("line", [line for line in commands("See it") if "restart" not in line])
    def test_each_command_answers(self, demo: Demo, line: str) -> None:
        done = demo.run(shlex.split(line, comments=True))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()

    def test_the_snippet_reads_the_live_release(self, demo: Demo) -> None:
        (snippet,) = blocks("python", "See it")
        done = demo.run([sys.executable, "-c", snippet])
        assert done.returncode == 0, done.stderr
        assert "stock_stats@v1" in done.stdout

    def test_a_stream_restarts_as_the_last_command_says(self, demo: Demo) -> None:
        (line,) = [line for line in commands("See it") if "restart" in line]
        done = demo.run(shlex.split(line, comments=True))
        assert done.returncode == 0, done.stderr

    def test_ctrl_c_stops_everything(self, demo: Demo) -> None:
        demo.interrupt()
        assert demo.left() == [], demo.said
