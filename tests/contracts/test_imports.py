"""Declaring is free: importing a job starts nothing, opens nothing, reads nothing; and imports flow one way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from platform_core.declare.discover import job_names
from platform_core.settings import ROOT

PROBE = Path(__file__).parent / "import_probe.py"
MODULES = ["ingest.topics", *(f"streaming_jobs.{name}.job" for name in job_names(ROOT))]


def probe(module: str) -> str:
    ran = subprocess.run(
        [sys.executable, str(PROBE), str(ROOT), module], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize("module", MODULES)
def test_importing_it_starts_no_process_opens_no_socket_and_reads_no_environment(module: str) -> None:
    assert probe(module) == ""


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("import os; os.environ.get('HOME')", "environment: HOME"),
        ("import os; os.getenv('HOME')", "environment: HOME"),
        ("import socket; socket.socket()", "socket.__new__"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("from platform_core.settings import load", "module: platform_core.settings"),
    ],
)
def test_the_probe_sees_what_it_looks_for(tmp_path: Path, does: str, told: str) -> None:
    (tmp_path / "guilty.py").write_text(f"{does}\n")
    ran = subprocess.run(
        [sys.executable, str(PROBE), str(ROOT), "guilty", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told in ran.stdout, ran.stderr


def test_imports_flow_as_the_house_is_built() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    ran = subprocess.run(
        [str(linter), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert " 0 broken" in ran.stdout
