"""The tutorial, infra/runbooks/changing-a-job.md, done to the letter on a platform with live data."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from platform_core.control import releases, wanted
from platform_core.names import ReleaseId
from platform_core.read import open_tables
from platform_core.release.retire import blockers
from platform_core.settings import ROOT
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
TUTORIAL = (ROOT / "infra" / "runbooks" / "changing-a-job.md").read_text()
STEPS = dict(re.findall(r"^\d\. \*\*(.+?)\.?\*\*(.*?)(?=^\d\. |\n\n)", TUTORIAL, re.M | re.S))
V1, V2 = ReleaseId("stock_stats", 1), ReleaseId("stock_stats", 2)
CENT = Decimal("0.01")


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_home(tmp_path_factory.mktemp("tutorial"), "tutorial", broker.servers) as running:
        running.freeze("stock_stats")
        running.generate("stocks", "--rate", "200")
        wanted.want(running.store, V1, "run", "a test")
        running.supervise()
        running.works(V1, batches=5)
        yield running


def does(platform: Platform, step: str, exit_codes: dict[str, int] | None = None) -> str:
    """Every command of the step, in the tree that was edited; what they said."""
    said = ""
    for command in re.findall(r"`weir ([^`]+)`", STEPS[step]):
        ran = subprocess.run(
            [sys.executable, "-m", "platform_core.cli", *command.split()],
            cwd=platform.settings.root,
            env={**platform.settings.child_environment(), "PYTHONPATH": str(platform.settings.root)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == (exit_codes or {}).get(command, 0), (command, ran.stdout, ran.stderr)
        said += ran.stdout + ran.stderr
    return said


def in_cents(platform: Platform) -> bool:
    """Whether every average that readers see is."""
    averages = open_tables(platform.settings).table("stock_stats").arrow(["avg_price"])["avg_price"].to_pylist()
    assert averages
    return all(average % CENT == 0 for average in averages)


def test_edit(platform: Platform) -> None:
    """`replace A by B` and `after A add B`, as the page says."""
    job = platform.settings.root / "streaming_jobs" / "stock_stats" / "job.py"
    text, page = job.read_text(), " ".join(STEPS["Edit"].split())
    ((old, new),) = re.findall(r"replace `([^`]+)` by `([^`]+)`", page)
    ((before, added),) = re.findall(r"after `([^`]+)` add `([^`]+)`", page)
    assert (text.count(old), text.count(before)) == (1, 1)
    job.write_text(text.replace(old, new).replace(before, f"{before}\n    {added}"))
    assert not in_cents(platform)


def test_plan(platform: Platform) -> None:
    said = does(platform, "Plan", {"plan stock_stats": 11, "plan stock_stats --last 10m": 11})
    assert "must replay" in said
    assert "ask_statistics" in said
    assert "avg_price" in said


def test_release(platform: Platform) -> None:
    assert "v2" in does(platform, "Release")
    until(lambda: releases.get(platform.store, V2).state == "following", "it follows")


def test_compare(platform: Platform) -> None:
    platform.works(V2)
    said = does(platform, "Compare")
    assert "avg_price" in said
    report = platform.settings.root / "differences.html"
    assert "avg_price" in report.read_text()


def test_cut_over(platform: Platform) -> None:
    does(platform, "Cut over")
    assert releases.get(platform.store, V2).state == "live"
    assert in_cents(platform)


def test_regret(platform: Platform) -> None:
    said = does(platform, "Regret")
    assert releases.get(platform.store, V1).state == "live"
    assert not in_cents(platform)
    assert all(word in said for word in ("freeze", "cutover", "rollback"))


def test_clean_up(platform: Platform) -> None:
    """A minute later, as the page says."""
    until(lambda: not blockers(platform.store, V2), "nobody may still read it")
    does(platform, "Clean up")
    assert not Path(platform.settings.table_uri(V2)).exists()
    assert releases.get(platform.store, V2).state == "retired"
