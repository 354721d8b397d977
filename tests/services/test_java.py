from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from platform_core.errors import SetupError
from platform_core.services import java


def a_java(folder: Path, says: str) -> Path:
    """A program that calls itself Java."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def none_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_core.settings._BUNDLED_JAVA", tmp_path / "weir-java")


def test_the_first_java_on_the_path_that_fits_is_taken(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", 'openjdk version "11.0.2" 2019-01-15')
    new = a_java(tmp_path / "new", 'openjdk version "21.0.8" 2025-07-15')
    found = java.find({"PATH": f"{old}/bin:{new}/bin"})
    assert (found.major, found.home) == (21, new)


def test_a_wrong_java_is_named_with_its_version(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", 'java version "1.8.0_392"')
    with pytest.raises(SetupError, match=rf"No Java 17 or 21: {old}/bin/java is Java 8\. Run `make setup`"):
        java.find({"PATH": f"{old}/bin"})


def test_java_home_hides_the_path_as_it_does_for_spark(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", 'openjdk version "11.0.2"')
    new = a_java(tmp_path / "new", 'openjdk version "17.0.9"')
    with pytest.raises(SetupError, match="is Java 11"):
        java.find({"PATH": f"{new}/bin", "JAVA_HOME": str(old)})


def test_a_release_file_answers_without_a_jvm(tmp_path: Path) -> None:
    home = a_java(tmp_path / "jdk", "nothing to be asked")
    (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n')
    assert java.version(home / "bin" / "java") == 17


def test_the_wrapper_drops_the_module_that_the_bundled_runtime_lacks(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.write_text('#!/bin/sh\nfor word do echo "$word"; done\n')
    wrapper = tmp_path / "java"
    wrapper.write_text(java.WRAPPER.format(java=inner, trust="/trust"))
    for path in (inner, wrapper):
        path.chmod(0o755)
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "Main"]
    said = subprocess.run([wrapper, *words], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == ["-Djavax.net.ssl.trustStore=/trust", "-Xmx1g", "-cp", "a b/*", "Main"]
