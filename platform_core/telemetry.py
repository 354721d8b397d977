"""One log event a decision: a constant message and fields, a line of JSON on stderr."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from platform_core.errors import WeirError


def event(logger: logging.Logger, message: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Logs `message`, which never varies, with what does vary in `fields`."""
    logger.log(level, message, extra={"fields": fields})


def configure(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Makes the process log lines of JSON to `stream` (default stderr); called once, by what starts the process."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # libraries speak when something is wrong
    logging.getLogger("platform_core").setLevel(level)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error": type(record.exc_info[1]).__name__, "traceback": self.formatException(record.exc_info)}
        return json.dumps(line, default=_as_text, separators=(",", ":"))


def _as_text(value: object) -> object:
    if isinstance(value, WeirError):
        return {"error": type(value).__name__, "what": value.what, "remedy": value.remedy}
    return str(value)
