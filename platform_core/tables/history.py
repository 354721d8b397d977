"""A table's commits with their true versions.

delta-rs reads the newest commits there are and counts them down from the version at which the table was loaded: of a
table that is being written, or was loaded at an older version, it tells commits of a later time under wrong numbers.
"""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable

from platform_core.errors import ServiceUnavailable

_ATTEMPTS = 20


def commits(uri: str, limit: int | None = None, until: int | None = None) -> list[dict[str, Any]]:
    """The newest first; `until` is the last version to be told, and `limit` counts from it."""
    for _ in range(_ATTEMPTS):
        table = DeltaTable(uri)
        later = 0 if until is None else max(0, table.version() - until)
        found = table.history(None if limit is None else limit + later)
        if DeltaTable(uri).version() == table.version():  # nothing was committed meanwhile: the numbers are right
            return [one for one in found if until is None or one["version"] <= until]
    raise ServiceUnavailable(f"Table {uri}: it is written faster than its log can be read.", remedy="Try again.")
