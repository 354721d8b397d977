"""Releases and rows as a page shows them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from platform_core.control.releases import Release, State
from platform_core.declare import Table
from platform_core.names import ReleaseId
from platform_core.orchestrate.excerpts import history, history_table, rows_table, some_rows
from platform_core.read.tables import LiveTable
from tests.orchestrate.test_quality import Job, Platform, followed, job

__all__ = ["followed", "job"]  # fixtures
AT = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)


def release(number: int, state: State, reason: str) -> Release:
    return Release(ReleaseId("stats", number), state, "", "", {}, {}, AT, "ann", reason, AT)


def test_the_newest_release_is_the_first_line() -> None:
    told = history_table([release(1, "standby", "first"), release(2, "live", "a | in\nlines")])
    assert told.splitlines()[2:] == [
        "| stats@v2 | live | 2026-03-10 12:30 | 2026-03-10 12:30 | ann | a \\| in lines |",
        "| stats@v1 | standby | 2026-03-10 12:30 | 2026-03-10 12:30 | ann | first |",
    ]


def test_no_value_of_a_personal_column_is_shown() -> None:
    table = Table(name="stats", schema="ticker STRING, trader STRING", personal=("trader",))
    assert rows_table(table, [{"ticker": "MMM"}]).splitlines()[2:] == ["| MMM | (personal) |"]


@pytest.mark.stack
def test_rows_and_releases_are_those_of_the_job(followed: Platform, job: Job) -> None:
    live = LiveTable(job.name, job.settings.storage.table(job.id(1)), job.id(1))
    assert "| A |" in some_rows(followed, job.name, live).value
    nowhere = LiveTable(job.name, job.settings.storage.table(job.id(2)))
    assert some_rows(followed, job.name, nowhere).value == "nothing is written yet"
    assert str(job.id(1)) in history(followed, job.name).value
