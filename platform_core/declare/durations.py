"""Durations as their authors write them: "10 seconds", "3 weeks"."""

from __future__ import annotations

import re
from datetime import timedelta

from platform_core.errors import DeclarationError

_UNITS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_SHAPE = re.compile(r"\s*(\d+)\s+([a-z]+?)s?\s*")


def duration(text: object, field: str) -> timedelta:
    """The length that `text` names; `field` says where it stands, for the error."""
    match = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2] not in _UNITS:
        raise DeclarationError(
            f"{field}: {text!r} is not a duration.",
            remedy=f"Write a whole number and a unit, as in '10 seconds'; units: {', '.join(_UNITS)}.",
        )
    return int(match[1]) * _UNITS[match[2]]
