"""`weir` as a user runs it: a process, its words and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from platform_core.settings import ROOT, Settings
from tests.read.conftest import publish, settings, store

__all__ = ["publish", "settings", "store"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Weir:
    environment: dict[str, str]
    folder: Path

    def __call__(self, *words: str, **more: str) -> Ran:
        ran = subprocess.run(
            [sys.executable, "-m", "platform_core.cli", *words],
            env={**self.environment, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **more},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def weir(request: pytest.FixtureRequest, platform_settings: Settings, tmp_path: Path) -> Weir:
    """Of the test's own platform where it has one; else of one of which nothing needs to run."""
    own = "settings" in request.fixturenames or "store" in request.fixturenames or "publish" in request.fixturenames
    settings: Settings = request.getfixturevalue("settings") if own else platform_settings
    return Weir(settings.child_environment(), tmp_path)
