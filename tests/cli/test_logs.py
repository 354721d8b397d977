"""Logs: the last lines, and what comes after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_core.cli.logs import grown, last_lines, log_of
from platform_core.errors import UsageError
from platform_core.settings import Settings, load


@pytest.fixture
def folder(tmp_path: Path) -> Settings:
    settings = load(environment={"WEIR_HOME": str(tmp_path)})
    settings.storage.logs.mkdir()
    return settings


def test_a_log_is_found_by_service_job_or_release(folder: Settings) -> None:
    for name in ("kafka", "driver-stock_stats-v1", "driver-stock_stats-v2", "driver-stock-v1"):
        (folder.storage.logs / f"{name}.log").touch()
    newest = folder.storage.logs / "driver-stock_stats-v1.log"
    newest.write_text("later\n")
    import os

    os.utime(folder.storage.logs / "driver-stock_stats-v2.log", (1, 1))
    assert log_of(folder, "kafka").name == "kafka.log"
    assert log_of(folder, "stock_stats") == newest
    assert log_of(folder, "stock_stats@v2").name == "driver-stock_stats-v2.log"
    with pytest.raises(UsageError, match=r"Logs there: kafka, stock-v1, stock_stats-v1, stock_stats-v2\."):
        log_of(folder, "kafak")


@pytest.mark.parametrize(("count", "text"), [(0, ""), (1, "c\n"), (2, "b\nc\n"), (99, "a\nb\nc\n")])
def test_the_last_lines(tmp_path: Path, count: int, text: str) -> None:
    path = tmp_path / "x.log"
    path.write_text("a\nb\nc\n")
    assert last_lines(path, count) == (text, 6)


def test_of_a_large_log_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("".join(f"{number:099d}\n" for number in range(10_000)))
    text, end = last_lines(path, 2)
    assert (text, end) == (f"{9998:099d}\n{9999:099d}\n", 1_000_000)


def test_what_is_added_follows_also_into_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("a\n")
    following = grown(path, 2, pause=0.01)
    with path.open("a") as file:
        file.write("b\n")
    assert next(following) == "b\n"
    path.rename(tmp_path / "x.log.1")
    path.write_text("c\n")
    assert next(following) == "c\n"
    path.write_text("")
    path.write_text("d\n"[:1])
    assert next(following) == "d"
