from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra import commands, setup

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set-up works on a folder of its own."""
    for module in (setup, commands):
        monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
        monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "bin" / "python")
        monkeypatch.setattr(module, "LOG", tmp_path / "setup.log")
    monkeypatch.setattr(setup, "STAMP", tmp_path / ".venv" / "stamp.json")
    (tmp_path / "setup.log").touch()
    return tmp_path


def make(*words: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env={"PATH": path}
    )


def test_make_alone_lists_the_targets() -> None:
    listed = make().stdout
    assert all(f"make {target}" in listed for target in ("setup", "demo", "test", "bench", "check", "clean"))


def test_a_wrong_python_is_refused_with_what_it_is_and_what_fits(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.9.2'\nexit 1\n")
    old.chmod(0o755)
    done = make("setup", f"PYTHON={old}")
    assert done.returncode != 0
    assert f"Wrong Python: weir needs 3.11 to 3.13; {old} is Python 3.9.2." in done.stderr
    assert "Remedy: install one" in done.stderr


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("error: client error (Connect)\n dns error: failed to lookup address", "the network or the package index"),
        (
            "NewConnectionError: Temporary failure in name resolution\nERROR: No matching distribution found for uv",
            "the network or the package index",
        ),
        ("ERROR: No matching distribution found for uv==9", "no wheel fits this Python and machine"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "a download is not what the lock says"),
        ("org.example:x:1 was refused: its SHA-256 is 0", "a download is not what the lock says"),
        ("invalid peer certificate: UnknownIssuer", "a certificate that this machine does not trust"),
    ],
)
def test_a_failure_of_a_step_is_told_with_cause_log_and_remedy(
    place: Path, capsys: pytest.CaptureFixture[str], said: str, cause: str
) -> None:
    assert setup.explain("packages", commands.diagnosed("uv", 1, said)) == 69
    told = capsys.readouterr().err
    assert "Set-up stopped at: packages" in told
    assert cause in told
    assert str(place / "setup.log") in told
    assert "Remedy: " in told


def test_a_half_made_environment_is_made_anew(place: Path) -> None:
    (place / ".venv" / "bin").mkdir(parents=True)
    (place / ".venv" / "bin" / "python").symlink_to("/nonexistent/python")
    setup.make_venv()
    assert setup.venv_works()


def test_settings_that_would_lead_pip_astray_are_dropped_and_mirrors_are_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in (
        ("PIP_FIND_LINKS", "/nonexistent"),
        ("PIP_TARGET", "/elsewhere"),
        ("PYTHONPATH", "/elsewhere"),
        ("PIP_INDEX_URL", "mirror"),
        ("HTTPS_PROXY", "proxy"),
    ):
        monkeypatch.setenv(name, text)
    env = commands.environment()
    assert not {"PIP_FIND_LINKS", "PIP_TARGET", "PYTHONPATH"} & set(env)
    assert (env["PIP_INDEX_URL"], env["UV_DEFAULT_INDEX"], env["HTTPS_PROXY"]) == ("mirror", "mirror", "proxy")


def test_a_set_up_with_tools_needs_no_second_one_without(place: Path) -> None:
    (place / ".venv" / "bin").mkdir(parents=True)
    (place / ".venv" / "bin" / "python").symlink_to(sys.executable)
    setup.STAMP.write_text(json.dumps(setup.stamp_of(True)))
    assert setup.already(setup.stamp_of(False))
    assert setup.already(setup.stamp_of(True))
    setup.STAMP.write_text(json.dumps(setup.stamp_of(False)))
    assert not setup.already(setup.stamp_of(True))
