"""One log event a decision: a constant message and fields, a line of JSON on stderr; and the catalogue of metrics."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TextIO

from platform_core.errors import WeirError


@dataclass(frozen=True)
class Metric:
    """A number that a release reports about each batch, as `control.facts.BatchFacts` carries it."""

    name: str
    unit: str
    meaning: str


def _catalogue(*metrics: Metric) -> Mapping[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


METRICS = _catalogue(
    Metric("records_in", "records", "records that the topics delivered to the batch"),
    Metric("rows_out", "rows", "rows that the batch wrote to its table"),
    Metric("used", "records", "records that reached the transform in time"),
    Metric("late", "records", "records dropped because they came later than their input's lateness"),
    Metric("rejected", "records", "records kept aside in the job's rejects"),
    Metric("filtered", "records", "records that the platform left out on purpose"),
    Metric("batch_seconds", "seconds", "time from the batch's plan to its commit"),
    Metric("lag", "records", "records that the topic holds beyond the batch's end, per partition"),
    Metric("watermark_ms", "milliseconds", "event time before which windows are closed"),
    Metric("newest_event_ms", "milliseconds", "the newest event time seen"),
    Metric("freshness_seconds", "seconds", "from the timestamp of the batch's newest record to readable in the table"),
    Metric("records_per_second", "records/s", "records that the batch worked off per second"),
)


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
