"""Which checkout and which platform a command means, wherever it is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from platform_core.cli import checkout
from platform_core.errors import SetupError
from platform_core.settings import ROOT

HOME = ROOT / ".weir"


def another(folder: Path) -> Path:
    """A second checkout, set up."""
    for name in ("platform_core/settings.py", "infra/profiles/local.toml", ".venv/bin/weir"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_a_command_means_its_own_checkout_from_any_folder(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("WEIR_")}
    ran = subprocess.run(
        [sys.executable, "-m", "platform_core.cli", "completion", "bash"],
        env={**environment, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stderr == ""
    assert checkout.notes(tmp_path, HOME, {}) == []
    assert checkout.notes(ROOT / "platform_core", HOME, {}) == []


def test_in_another_checkout_it_says_which_one_it_means(tmp_path: Path) -> None:
    other = another(tmp_path / "other")
    (note,) = checkout.notes(other / "platform_core", HOME, {})
    assert note == f"this is weir of {ROOT}; for the checkout that you are in: WEIR_ROOT={other}"
    assert checkout.notes(other, HOME, {"WEIR_HOME": "/of/weir"}) == []


def test_beside_another_platform_it_says_which_one_it_means(tmp_path: Path) -> None:
    state = tmp_path / ".weir"
    state.mkdir()
    assert checkout.notes(tmp_path, HOME, {}) == []
    (state / "postgres.password").touch()
    assert checkout.notes(tmp_path, HOME, {}) == [
        f"this is the platform in {HOME}; for the one in this folder: WEIR_HOME={state}"
    ]
    assert checkout.notes(tmp_path, state, {}) == []


def test_a_checkout_that_is_named_runs_its_own_weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda *given: became.append(given))  # pyright: ignore[reportUnknownLambdaType]
    other = another(tmp_path / "other")
    checkout.enter(["status", "--json"], {"WEIR_ROOT": str(other)})
    launcher = other / ".venv" / "bin" / "weir"
    assert became == [(launcher, [str(launcher), "status", "--json"])]
    checkout.enter(["status"], {"WEIR_ROOT": str(ROOT)})
    checkout.enter(["status"], {})
    assert len(became) == 1


def test_a_checkout_that_is_named_and_not_set_up_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"there is no .*weir\. Name a checkout of weir, and run `make setup` in it"):
        checkout.enter(["status"], {"WEIR_ROOT": str(tmp_path)})
