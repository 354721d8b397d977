"""Logs that a machine reads: one line an event, a constant message, and fields."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from platform_core import telemetry
from platform_core.errors import ServiceUnavailable
from platform_core.names import ReleaseId

logger = logging.getLogger("platform_core.anything")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    telemetry.configure(stream)
    yield stream
    root.handlers[:], root.level = handlers, level


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_an_event_is_one_line_with_its_fields(log: io.StringIO) -> None:
    telemetry.event(logger, "batch committed", release=ReleaseId("stock_stats", 2), batch=7)
    (line,) = lines(log)
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "platform_core.anything",
        "event": "batch committed",
        "release": "stock_stats@v2",
        "batch": 7,
    }


def test_an_error_keeps_what_and_remedy_apart(log: io.StringIO) -> None:
    telemetry.event(logger, "waits", error=ServiceUnavailable("No broker.", remedy="Start it."))
    assert lines(log)[0]["error"] == {"error": "ServiceUnavailable", "what": "No broker.", "remedy": "Start it."}


def test_a_traceback_stays_on_its_line(log: io.StringIO) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logger.exception("broke")
    (line,) = lines(log)
    assert line["error"] == "ValueError"
    assert "two\nlines" in line["traceback"]


def test_libraries_speak_only_when_something_is_wrong(log: io.StringIO) -> None:
    logging.getLogger("someone.elses").info("chatter")
    logging.getLogger("someone.elses").warning("trouble")
    assert [line["event"] for line in lines(log)] == ["trouble"]
