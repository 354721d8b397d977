"""Signs of life of the platform's own processes, so that anyone can tell that nothing supervises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from platform_core.control.store import ControlStore

SILENT_SECONDS = 30.0  # a supervisor beats every second; after this nobody is there


@dataclass(frozen=True)
class Beat:
    name: str
    beat_at: datetime
    age_seconds: float  # on Postgres's clock
    detail: dict[str, Any]


@dataclass(frozen=True)
class SupervisorHealth:
    """Whether anybody makes true what is wanted."""

    there: bool
    heard_seconds_ago: float | None

    @property
    def heard(self) -> str:
        ago = self.heard_seconds_ago
        return "was never heard of" if ago is None else f"was last heard of {ago:.0f} s ago"

    def __str__(self) -> str:
        if self.there:
            return "supervisor: running"
        return f"The supervisor {self.heard}. NOTHING SUPERVISES; start it with `weir up`"


def supervision(beats: Mapping[str, Beat]) -> SupervisorHealth:
    beat = beats.get("supervisor")
    age = None if beat is None else beat.age_seconds
    return SupervisorHealth(age is not None and age <= SILENT_SECONDS, age)


def beat(store: ControlStore, name: str, detail: dict[str, Any]) -> None:
    with store.transaction() as cursor:
        cursor.execute(
            "insert into weir.services (name, detail) values (%s, %s) "
            "on conflict (name) do update set beat_at = clock_timestamp(), detail = excluded.detail",
            (name, Jsonb(detail)),
        )


def all(store: ControlStore) -> dict[str, Beat]:
    with store.transaction() as cursor:
        cursor.execute(
            "select *, greatest(0, extract(epoch from clock_timestamp() - beat_at))::float8 as age from weir.services"
        )
        return {row["name"]: Beat(row["name"], row["beat_at"], row["age"], row["detail"]) for row in cursor}
