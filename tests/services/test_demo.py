"""`weir demo` as a person runs it: wait for the first results, then ctrl-C."""

from __future__ import annotations

import io
import signal
import sys
from pathlib import Path

import pytest
from rich.console import Console

from platform_core.services import kept, ports, process
from platform_core.services.down import down
from platform_core.settings import ROOT, load


@pytest.mark.stack
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_demo_shows_first_results_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    first = ports.free(5)[0]
    settings = load(
        environment={
            "WEIR_HOME": str(tmp_path / "home"),
            "WEIR_KAFKA__PORT": str(first),
            "WEIR_POSTGRES__PORT": str(first + 2),
            "WEIR_DAGSTER__PORT": str(first + 3),
        }
    )
    log = tmp_path / "demo.log"
    child = process.spawn((sys.executable, "-m", "platform_core.cli", "demo"), settings.child_environment(), log, ROOT)
    try:
        assert process.until(lambda: child.poll() is not None or "ctrl-C stops everything" in log.read_text(), 1500)
        assert child.poll() is None, log.read_text()
        child.send_signal(signal.SIGINT)
        assert child.wait(300) == 0, log.read_text()
    finally:
        if child.poll() is None:
            child.kill()
        down(settings, Console(file=io.StringIO()))
    told = log.read_text()
    assert all(f"{job}@v1" in told for job in ("word_count", "stock_stats", "clickstream"))
    assert "Nothing of it runs." in told
    assert kept.belonging(settings.home) == []
