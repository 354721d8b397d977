"""The location follows the tree."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from platform_core.orchestrate.reloading import tree_changed
from platform_core.settings import Settings, load

LOADS = "class Made:\n    def get_repository_def(self): pass\ndef weir(): return Made()\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A tree of one location that loads, and nobody at the page's port."""
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "__init__.py").touch()
    (tmp_path / "infra" / "definitions.py").write_text(LOADS)
    return load(environment={"WEIR_HOME": str(tmp_path / "home")}).model_copy(update={"root": tmp_path})


class Site(BaseHTTPRequestHandler):
    """Dagster's page, as far as a reload asks it."""

    asked: list[str]

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"])
        said = json.dumps({"data": {"reloadRepositoryLocation": {"__typename": "WorkspaceLocationEntry"}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@contextmanager
def page(settings: Settings) -> Generator[tuple[Settings, list[str]]]:
    asked: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Asked", (Site,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = settings.dagster.model_copy(update={"port": server.server_port})
    yield settings.model_copy(update={"dagster": there}), asked
    server.shutdown()
    server.server_close()


def ticks(sensor: Any, times: int) -> list[str]:
    said, cursor = list[str](), None
    for _ in range(times):
        with dg.build_sensor_context(cursor=cursor) as context:
            told = sensor(context)
        cursor = told.cursor
        said.append(str(told.skip_reason.skip_message))
    return said


def new_job(settings: Settings, text: str) -> None:
    folder = settings.root / "streaming_jobs" / "shares"
    folder.mkdir(parents=True)
    (folder / "job.py").write_text(text)


def test_a_new_job_is_loaded_when_its_files_rest(settings: Settings) -> None:
    with page(settings) as (known, asked):
        sensor = tree_changed(known)
        assert ticks(sensor, 1) == ["the tree is as it was loaded"]
        new_job(known, "shares = 1")
        assert ticks(sensor, 2)[1] == "loaded anew"
    (query,) = asked
    assert 'repositoryLocationName: "weir"' in query


def test_a_tree_that_does_not_load_leaves_the_one_before_and_is_tried_once(settings: Settings) -> None:
    with page(settings) as (known, asked):
        sensor = tree_changed(known)
        (known.root / "infra" / "definitions.py").write_text("import nothing_of_this_name")
        waits, refused, after = ticks(sensor, 3)
    assert waits == "the tree has changed; it is loaded when it rests"
    assert "No module named 'nothing_of_this_name'" in refused
    assert after.startswith("the tree still does not load")
    assert asked == []
