"""Who changed what, when: one line for every change that a person or the platform asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from platform_core.control.store import ControlStore, Cursor


@dataclass(frozen=True)
class AuditLine:
    at: datetime
    who: str
    action: str
    subject: str
    detail: dict[str, Any]


def write(cursor: Cursor, who: str, action: str, subject: str, detail: dict[str, Any]) -> None:
    """Within the transaction of the change itself: both or neither."""
    cursor.execute(
        "insert into weir.audit (who, action, subject, detail) values (%s, %s, %s, %s)",
        (who, action, subject, Jsonb(detail)),
    )


def read(store: ControlStore, subject: str | None = None, limit: int = 100) -> list[AuditLine]:
    """The newest first. A job's name as `subject` also gives the lines of its releases."""
    with store.transaction() as cursor:
        cursor.execute(
            "select at, who, action, subject, detail from weir.audit "
            "where %(subject)s::text is null or subject = %(subject)s or starts_with(subject, %(subject)s || '@') "
            "order by id desc limit %(limit)s",
            {"subject": subject, "limit": limit},
        )
        return [AuditLine(**row) for row in cursor]
