"""A plan of today's tree against the archive of 186ad77: what changed in the platform alone replays nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from platform_core.archived.protocol import PROTOCOL, command
from platform_core.archived.rows import FIRST, ROWS_VERSION, reasons
from platform_core.release import archive
from platform_core.release.contents import copy
from platform_core.release.plan.changes import ChangeKind, PlannedVersion, changes, kind_of
from platform_core.release.plan.reach import Code
from platform_core.settings import Settings
from tests.archived.frozen import last_line, ran

pytestmark = pytest.mark.ordinary  # each asks processes of two trees
JOBS = ("stock_stats", "clickstream", "word_count")


def declared(settings: Settings, code: Path, protocol: int, job: str) -> Mapping[str, Any]:
    environment = archive.environment_for(settings, code, Path(sys.executable))
    told = ran(command(sys.executable, protocol, "describe", job), environment, settings.home)
    return json.loads(last_line(told))["declared"]


def told(settings: Settings, old: Path, new: Path, job: str) -> tuple[ChangeKind, list[str]]:
    """What the plan says of the platform's rows is left to the versions."""
    was = PlannedVersion(Code(old), declared(settings, old, 0, job), 0, FIRST)
    now = PlannedVersion(Code(new), declared(settings, new, PROTOCOL, job), PROTOCOL, FIRST)
    found = changes(was, now)
    return kind_of(found), [f"{one} [{one.where}]" for one in found if one.kind is ChangeKind.REPLAY]


@pytest.mark.parametrize("job", JOBS)
def test_the_platform_of_today_is_a_revision(settings: Settings, frozen_code: Path, fresh_code: Path, job: str) -> None:
    assert told(settings, frozen_code, fresh_code, job) == (ChangeKind.REVISION, [])


def test_a_renamed_and_rewritten_module_of_the_platform_is_a_revision(
    settings: Settings, frozen_code: Path, fresh_code: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    copy(fresh_code, moved)
    (moved / "platform_core/streaming/source/parsing.py").rename(moved / "platform_core/streaming/source/parsed.py")
    for path in moved.rglob("*.py"):
        text = path.read_text()
        path.write_text(text.replace("source.parsing", "source.parsed").replace("_unreadable", "_not_read"))
    assert told(settings, frozen_code, moved, "clickstream") == (ChangeKind.REVISION, [])


def test_what_the_versions_of_rows_say_of_each_job_is_what_a_plan_says(settings: Settings, fresh_code: Path) -> None:
    for job in JOBS:
        values, code = declared(settings, fresh_code, PROTOCOL, job), Code(fresh_code)
        was, now = (PlannedVersion(code, values, PROTOCOL, version) for version in (FIRST, ROWS_VERSION))
        assert [str(one) for one in changes(was, now)] == list(reasons(FIRST, ROWS_VERSION, values))
