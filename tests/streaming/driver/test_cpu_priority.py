"""A replay stands back and comes forward again, in a session of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from pathlib import Path
from platform_core.streaming.driver.cpu_priority import standing_back
own = Path("/proc/self/autogroup")
told = lambda: own.read_text().split()[-1]
before = told()
with standing_back():
    behind = told()
print(before, behind, told())
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this system does not weigh sessions")
@pytest.mark.parametrize(("own", "weights"), [(True, "0 5 0"), (False, "0 0 0")])
def test_only_a_session_of_its_own_stands_back_and_only_meanwhile(own: bool, weights: str) -> None:
    holder = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PROGRAM!r}])"]
    argv = [sys.executable, "-c", PROGRAM] if own else holder
    ran = subprocess.run(argv, capture_output=True, text=True, start_new_session=True, check=True)
    assert ran.stdout.split() == weights.split()


def test_where_sessions_are_not_weighed_nothing_happens(tmp_path: Path) -> None:
    program = PROGRAM.replace("standing_back()", f"standing_back(Path({str(tmp_path / 'no' / 'such')!r}))")
    ran = subprocess.run(
        [sys.executable, "-c", program.replace('Path("/proc/self/autogroup")', f"Path({__file__!r})")],
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
