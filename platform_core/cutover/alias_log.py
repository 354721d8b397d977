"""Which release each table's readers saw, since when: the control store's alias history, once more beside the tables.

`aliases.jsonl` in the warehouse. A control store that was lost, or restored from an old backup, gets its aliases
from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from platform_core.control.position import Position
from platform_core.control.store import ControlStore, Cursor
from platform_core.names import ReleaseId
from platform_core.settings import Settings

_AT_ONCE = 1000


@dataclass(frozen=True)
class AliasMove:
    table: str
    release: ReleaseId
    since: datetime
    by: str
    position: Position | None

    def to_json(self) -> str:
        where = None if self.position is None else json.loads(self.position.to_json())
        told: dict[str, Any] = {"table": self.table, "release": str(self.release), "since": self.since.isoformat()}
        return json.dumps({**told, "by": self.by, "position": where}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> AliasMove:
        raw = json.loads(text)
        where = None if raw["position"] is None else Position.from_json(json.dumps(raw["position"]))
        return cls(
            raw["table"], ReleaseId.parse(raw["release"]), datetime.fromisoformat(raw["since"]), raw["by"], where
        )

    @property
    def identity(self) -> tuple[str, ReleaseId, datetime]:
        return self.table, self.release, self.since


def append(settings: Settings, store: ControlStore) -> int:
    """Writes what the log lacks; how many lines. Safe to repeat: a line that a crash had written already is not
    written again, and of two who append at once the second waits for none and writes nothing."""
    with store.transaction() as cursor:
        found = _unlogged(cursor)
        if not found:
            return 0
        there = {line.identity for line in read(settings)}
        missing = [line for _, line in found if line.identity not in there]
        _write(settings, missing)
        cursor.execute("update weir.alias_history set logged = true where id = any(%s)", ([at for at, _ in found],))
    return len(missing)


def read(settings: Settings) -> list[AliasMove]:
    """The oldest first. The last line may be torn: then its writer died, and writes it again."""
    lines = settings.storage.alias_log.text().split("\n")
    return [AliasMove.from_json(line) for line in lines if line.endswith("}") and _whole(line)]


def newest(lines: Sequence[AliasMove]) -> dict[str, AliasMove]:
    """The one in force, of each table."""
    return {line.table: line for line in sorted(lines, key=lambda line: line.since)}


def _unlogged(cursor: Cursor) -> list[tuple[int, AliasMove]]:
    cursor.execute(
        "select * from weir.alias_history where not logged order by id limit %s for update skip locked", (_AT_ONCE,)
    )
    return [(row["id"], _line(row)) for row in cursor]


def _line(row: dict[str, Any]) -> AliasMove:
    where = None if row["position"] is None else Position.from_json(json.dumps(row["position"]))
    return AliasMove(row["table_name"], ReleaseId(row["job"], row["number"]), row["since"], row["by"], where)


def _whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _write(settings: Settings, lines: Sequence[AliasMove]) -> None:
    if not lines:
        return
    text, place = "".join(line.to_json() + "\n" for line in lines), settings.storage.alias_log
    before = place.text()
    place.append("\n" + text if before and not before.endswith("\n") else text)  # after a torn line
