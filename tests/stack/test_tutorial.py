"""The tutorial, infra/runbooks/changing-a-job.md, done to the letter on a platform with live data."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_core.control import releases, wanted
from platform_core.names import ReleaseId
from platform_core.read import open_tables
from platform_core.release.retire import blockers
from platform_core.settings import ROOT
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
TUTORIAL = (ROOT / "infra" / "runbooks" / "changing-a-job.md").read_text()
STEPS = dict(re.findall(r"^\d\. \*\*(.+?)\.?\*\*(.*?)(?=^\d\. |\n\n)", TUTORIAL, re.M | re.S))
V1, V2, V3 = (ReleaseId("stock_stats", number) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    soon = {"WEIR_MOVES__READERS_SECONDS": "10"}  # where the page says a minute
    with a_home(tmp_path_factory.mktemp("tutorial"), "tutorial", broker.servers, **soon) as running:
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


def sound(platform: Platform) -> bool:
    """Whether no average that readers see is below the lowest price."""
    rows = open_tables(platform.settings).table("stock_stats").arrow(["min_price", "avg_price"]).to_pylist()
    assert rows
    return all(row["min_price"] <= row["avg_price"] for row in rows)


def edit(platform: Platform, step: str) -> None:
    """`replace A by B` and `after A add B`, as the page says."""
    job = platform.settings.root / "streaming_jobs" / "stock_stats" / "job.py"
    text, page = job.read_text(), " ".join(STEPS[step].split())
    for old, new in re.findall(r"replace `([^`]+)` by `([^`]+)`", page):
        assert text.count(old) == 1
        text = text.replace(old, new)
    for before, added in re.findall(r"after `([^`]+)` add `([^`]+)`", page):
        assert text.count(before) == 1
        text = text.replace(before, f"{before}\n    {added}")
    assert text != job.read_text()
    job.write_text(text)


def state(platform: Platform, release: ReleaseId) -> str:
    return releases.get(platform.store, release).state


def test_seed_a_bug(platform: Platform) -> None:
    assert sound(platform)
    edit(platform, "Seed a bug")
    does(platform, "Seed a bug")
    assert state(platform, V2) == "live"
    platform.works(V2)
    assert not sound(platform)


def test_fix(platform: Platform) -> None:
    edit(platform, "Fix")
    assert not sound(platform), "the running release does not notice"


def test_plan(platform: Platform) -> None:
    said = does(platform, "Plan", {"plan stock_stats": 11, "plan stock_stats --last 10m": 11})
    assert "must replay" in said
    assert "ask_statistics" in said
    assert "min_price" in said


def test_release(platform: Platform) -> None:
    assert "v3" in does(platform, "Release")
    until(lambda: state(platform, V3) == "following", "it follows")


def test_compare(platform: Platform) -> None:
    platform.works(V3)
    said = does(platform, "Compare")
    assert "min_price" in said
    report = platform.settings.root / "differences.html"
    assert "min_price" in report.read_text()


def test_cut_over(platform: Platform) -> None:
    does(platform, "Cut over")
    assert state(platform, V3) == "live"
    assert sound(platform)


def test_regret(platform: Platform) -> None:
    said = does(platform, "Regret")
    assert state(platform, V2) == "live"
    assert not sound(platform)
    assert all(word in said for word in ("freeze", "reset", "cutover", "rollback"))


def test_think_again(platform: Platform) -> None:
    platform.works(V2, V3)
    does(platform, "Think again")
    assert state(platform, V3) == "live"
    assert sound(platform)


def test_clean_up(platform: Platform) -> None:
    """As late as the page says."""
    until(lambda: not blockers(platform.settings, platform.store, V2), "nobody may still read it")
    does(platform, "Clean up")
    for release in (V1, V2):
        assert not Path(platform.settings.storage.table(release).uri).exists()
        assert state(platform, release) == "retired"
