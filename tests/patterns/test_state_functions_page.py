"""The page on state functions is true: its examples are tests, and run here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from typing_extensions import override

from platform_core.archived.protocol import PROTOCOL
from platform_core.archived.rows import ROWS_VERSION
from platform_core.declare.discover import load_job
from platform_core.errors import DeclarationError
from platform_core.release.contents import copy
from platform_core.release.declared import declared
from platform_core.release.plan.changes import PlannedVersion, changes
from platform_core.release.plan.reach import Code, Reach, transform_roots
from platform_core.settings import ROOT
from platform_core.testing import QUIET, Kit, at
from tests.testing.jobs import bought, job
from tests.testing.stateful import silent

PAGE = (ROOT / "infra" / "runbooks" / "state-functions.md").read_text()
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S))


@pytest.mark.parametrize("example", re.findall(r"^def (test_\w+)", CODE, re.M))
def test_the_page_says(example: str, kit: Kit) -> None:
    names: dict[str, Any] = {"__name__": "state_functions_page"}  # no module of that name: workers are sent the class
    exec(compile(CODE, "state-functions.md", "exec"), names)
    names[example](kit)


def test_the_plan_sees_the_function_and_what_it_is_made_of() -> None:
    reached = Reach(Code(ROOT), transform_roots(Code(ROOT), "machine_health")).definitions
    assert ("streaming_jobs/machine_health/job.py", "Failures") in reached
    assert ("platform_core/patterns/in_order.py", "InOrder") in reached


def test_a_changed_schema_of_state_must_be_replayed(tmp_path: Path) -> None:
    copy(ROOT, tmp_path)
    module = tmp_path / "streaming_jobs/machine_health/job.py"
    module.write_text(module.read_text().replace('"raised BOOLEAN"', '"raised INT"'))
    values = declared(load_job("machine_health", ROOT))
    was, now = (PlannedVersion(Code(root), values, PROTOCOL, ROWS_VERSION) for root in (ROOT, tmp_path))
    assert [str(one) for one in changes(was, now)] == ["the transform's class Failures changed"]


class Times(StatefulProcessor):
    """What the page's table says of times, keys and rows, as text."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = handle.getValueState("kept", "at TIMESTAMP")

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        for row in rows:
            (kept,) = self._kept.get() or (None,)
            self._kept.update((row["event_time"],))
            said = [key, row["event_time"].tzname(), kept and (kept.tzinfo, kept.isoformat()), type(row["record"])]
            zoned = datetime(2025, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
            said.append(timerValues.getCurrentWatermarkInMs())
            yield Row(said=repr(said), zoned=zoned, bare=zoned.astimezone(UTC).replace(tzinfo=None))

    def close(self) -> None:
        pass


def times(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("user").transformWithState(
        Times(), "said STRING, zoned TIMESTAMP, bare TIMESTAMP", outputMode="Append", timeMode="EventTime"
    )


def test_times_keys_and_rows_arrive_as_the_page_says(kit: Kit) -> None:
    job_of_times = job("times", times, "said STRING, zoned TIMESTAMP, bare TIMESTAMP")
    script = [bought("ann", 1, second=0), QUIET, bought("ann", 2, second=60)]
    kept, watermark = "(None, '2025-03-01T12:00:00')", int(at(-10).timestamp() * 1000)
    assert kit.run(job_of_times, script).rows == [
        {"said": f"[('ann',), 'UTC', {kept}, <class 'dict'>, {watermark}]", "zoned": at(0), "bare": at(0)},
        {"said": "[('ann',), 'UTC', None, <class 'dict'>, 0]", "zoned": at(0), "bare": at(0)},
    ]
    assert [row["said"][-4:] for row in kit.run_as_batch(job_of_times, script).rows] == [" -1]", " -1]"]


def test_in_a_batch_no_timer_fires(kit: Kit) -> None:
    assert kit.run_as_batch(silent, [bought("ann", 1, second=0), bought("ann", 2, second=600)]).rows == []


def test_state_in_memory_is_refused(kit: Kit) -> None:
    with pytest.raises(DeclarationError, match="declared 'disk', as state functions need it, came 'memory'"):
        kit.run(job("times", times, "said STRING, zoned TIMESTAMP, bare TIMESTAMP", state="memory"), [])
