"""The file of classes that set-up makes: Spark's JVMs take it, and do without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from platform_core.services import classes, java
from platform_core.settings import ROOT, Settings, load
from platform_core.streaming.driver.session import JAVA_OPTIONS, session_conf

_LOADED = """
import sys
from platform_core.settings import load
from platform_core.streaming.driver.session import JAVA_OPTIONS, session, session_conf

options = session_conf(load(), "")[JAVA_OPTIONS]
session(load(), "shared", **{JAVA_OPTIONS: options + " -Xlog:class+load=info:file=" + sys.argv[1]}).stop()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it would be; it is not there."""
    path = tmp_path / "a place" / "classes.jsa"
    path.parent.mkdir()
    monkeypatch.setattr(Settings, "classes", path)
    return path


def test_a_session_names_the_file_where_there_is_one(file: Path) -> None:
    assert "SharedArchiveFile" not in session_conf(load(), "x")[JAVA_OPTIONS]
    file.touch()
    assert f'"-XX:SharedArchiveFile={file}"' in session_conf(load(), "x")[JAVA_OPTIONS]


def test_one_older_than_what_it_was_made_from_is_not_fresh(file: Path) -> None:
    assert not classes.fresh(load())
    file.touch()
    assert classes.fresh(load())
    os.utime(file, (0, 0))
    assert not classes.fresh(load())


def test_another_java_is_left_without(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "java"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'openjdk version \"21.0.8\"' >&2\n")
    other.chmod(0o755)
    program = [sys.executable, "-m", "platform_core.services.classes", str(tmp_path / "log")]
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    said = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "left out: Java 17 takes one" in said.stdout


@pytest.mark.stack
@pytest.mark.skipif(java.find().major != classes.TAKEN_BY, reason="set-up makes none for this machine's Java")
def test_sparks_classes_come_from_the_file(tmp_path: Path) -> None:
    log = tmp_path / "loaded"
    program = [sys.executable, "-c", _LOADED, str(log)]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True)
    lines = log.read_text().splitlines()
    shared = [line for line in lines if "org.apache.spark" in line and "shared objects file (top)" in line]
    parsed = [line for line in lines if "org.apache.spark" in line and "source: jar:" in line]
    assert len(shared) > 1000 > len(parsed)
