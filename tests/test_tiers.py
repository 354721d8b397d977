"""Each test is of one tier, and a tier that outgrows its budget fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from platform_core.settings import ROOT
from tests.tiers import LONG, ORDINARY, QUICK, SERVICES, TIERS, Tier, marker_of, outgrown, whole

SHORT = Tier("make short", "short", 10)


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_test_that_takes_a_service_is_not_quick(service: str) -> None:
    assert marker_of("tests/streaming/driver/test_batch_gate.py", {"parametrize"}, ["tmp_path", service]) == ORDINARY


def test_a_test_that_takes_none_is_quick_and_any_may_say_long() -> None:
    assert marker_of("tests/streaming/driver/test_batch_gate.py", set(), ["tmp_path"]) == QUICK
    assert marker_of("tests/streaming/driver/test_batch_gate.py", {ORDINARY}, ["tmp_path"]) == ORDINARY
    assert marker_of("tests/streaming/driver/test_batch_gate.py", {"stack"}, []) == ORDINARY
    assert marker_of("tests/services/test_jars.py", set(), []) == ORDINARY
    assert marker_of("tests/streaming/driver/test_batch_gate.py", {"stack", LONG}, ["spark"]) == LONG


def test_make_runs_each_tier_by_its_markers() -> None:
    targets = dict(re.findall(r"^([a-z-]+):[^\n]*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M))
    for tier in TIERS:
        (selects,) = re.findall(r"pytest -m (\S+|\".+\")$", targets[tier.command.removeprefix("make ")], re.M)
        assert selects.strip('"') == tier.selects


def test_a_part_of_a_tier_has_no_budget() -> None:
    assert whole(QUICK, []) == TIERS[0]
    assert whole(QUICK, ["paths"]) is None
    assert whole("", []) is None


def test_a_tier_over_its_budget_is_told_with_its_slowest() -> None:
    assert outgrown(SHORT, {"a": 5.0, "b": 5.0}, busy=0.0) == ""
    told = outgrown(SHORT, {"a": 1.0, "b": 9.5, "c": 2.0}, busy=0.0).splitlines()
    assert told[0].startswith("`make short` has outgrown its budget: its tests took 12 s of 10 s")
    assert [line.split()[-1] for line in told[2:]] == ["b", "c", "a"]


def test_what_others_take_of_the_machine_is_granted() -> None:
    assert outgrown(SHORT, {"a": 19.0}, busy=0.5) == ""
    assert outgrown(SHORT, {"a": 21.0}, busy=0.5)
    assert outgrown(SHORT, {"a": 41.0}, busy=1.0), "and never more than four times the budget"


_SUITE = """
import time
import pytest

def test_that_waits():
    time.sleep(0.2)

@pytest.mark.{mark}
def test_of_another_tier():
    pass
"""
_CONFTEST = """
import dataclasses
from tests import budgets, tiers

tiers.TIERS = tuple(dataclasses.replace(tier, seconds={seconds}) for tier in tiers.TIERS)
budgets._busy = lambda: 0.0
pytest_plugins = ("tests.budgets",)
"""


def ran(folder: Path, *options: str, seconds: float = 0.1) -> tuple[int, str]:
    """The outcome of a suite of one quick test, that waits, and a long one."""
    (folder / "conftest.py").write_text(_CONFTEST.format(seconds=seconds))
    (folder / "test_it.py").write_text(_SUITE.format(mark=LONG))
    markers = "".join(f"    {name}: of that tier\n" for name in (QUICK, ORDINARY, LONG))
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{markers}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.ordinary
def test_a_run_of_a_whole_tier_fails_over_its_budget(tmp_path: Path) -> None:
    code, said = ran(tmp_path, "-m", QUICK)
    assert code == 1
    assert "`make quick` has outgrown its budget" in said
    assert "test_it.py::test_that_waits" in said
    assert "1 failed, 1 passed, 1 deselected" in said.splitlines()[-1]


@pytest.mark.ordinary
def test_a_run_within_its_budget_or_of_a_part_passes(tmp_path: Path) -> None:
    assert ran(tmp_path, "-m", QUICK, seconds=30)[0] == 0
    for part in (["-m", QUICK, "test_it.py"], ["-m", QUICK, "-k", "waits"], []):
        assert ran(tmp_path, *part)[0] == 0
