from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_core.errors import SetupError
from platform_core.services import jars
from platform_core.services.jars import Jar


@pytest.fixture
def fetched(tmp_path: Path) -> Callable[[Jar, bytes], Path]:
    """Puts a file where Ivy leaves what it has fetched."""

    def put(jar: Jar, content: bytes) -> Path:
        place = tmp_path / ".fetch" / "kafka-0"
        (place / "lib").mkdir(parents=True, exist_ok=True)
        (place / "lib" / jar.file).write_bytes(content)
        return place

    return put


def a_jar(content: bytes, name: str = "good") -> Jar:
    digest = hashlib.sha256(content).hexdigest()
    return Jar(f"org.example:{name}:1", f"{name}-1.jar", digest, len(content), "kafka")


def test_a_jar_with_another_hash_is_refused_and_not_installed(
    tmp_path: Path, fetched: Callable[[Jar, bytes], Path]
) -> None:
    jar = a_jar(b"what was locked")
    place = fetched(jar, b"what arrived...")
    with pytest.raises(SetupError, match=r"org\.example:good:1 was refused: its SHA-256 is .*jars\.lock\.json says"):
        jars.accept(jar, place, tmp_path)
    assert jars.missing([jar], tmp_path) == [jar]
    assert not place.exists(), "a refused file would be taken from the cache the next time"


def test_a_jar_that_changed_after_its_installation_is_fetched_anew(tmp_path: Path) -> None:
    jar = a_jar(b"0123456789")
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / jar.file).write_bytes(b"9876543210")
    assert jars.to_fetch([jar], tmp_path) == [jar]


def test_an_older_version_is_taken_off_the_class_path(tmp_path: Path, fetched: Callable[[Jar, bytes], Path]) -> None:
    jar, older = a_jar(b"new"), tmp_path / "kafka" / "good-0.jar"
    jars.accept(jar, fetched(jar, b"new"), tmp_path)
    older.write_bytes(b"old")
    log = tmp_path / "log"
    assert jars.install([jar], tmp_path, lambda *_: None, log) == 0
    assert [path.name for path in (tmp_path / "kafka").iterdir()] == [jar.file]


def test_the_lock_names_every_jar_once_with_a_hash() -> None:
    lock = jars.read_lock()
    assert {jar.use for jar in lock} == {"spark", "kafka"}
    assert len({(jar.use, jar.coord.rpartition(":")[0]) for jar in lock}) == len(lock)
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in lock)
