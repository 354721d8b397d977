"""A table's commits with their true versions.

delta-rs reads the newest commits there are and counts them down from the version at which the table was loaded: of a
table that is being written, or was loaded at an older version, it tells commits of a later time under wrong numbers.
"""

from __future__ import annotations

from typing import Any

from platform_core.errors import ServiceUnavailable
from platform_core.storage import Place

_ATTEMPTS = 20


def commits(place: Place, limit: int | None = None, until: int | None = None) -> list[dict[str, Any]]:
    """The newest first; `until` is the last version to be told, and `limit` counts from it."""
    for _ in range(_ATTEMPTS):
        table = place.table()
        later = 0 if until is None else max(0, table.version() - until)
        found = table.history(None if limit is None else limit + later)
        if place.table().version() == table.version():  # nothing was committed meanwhile: the numbers are right
            return [one for one in found if until is None or one["version"] <= until]
    raise ServiceUnavailable(f"Table {place}: it is written faster than its log can be read.", remedy="Try again.")
