"""The late count is what Spark really dropped, found by comparing the stream's rows with the batch's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from platform_core.declare import StreamingJob
from platform_core.testing import BATCH, END, QUIET, Kit, Record, Result, Script, at
from tests.testing import jobs
from tests.testing.jobs import bought, paid_back

LATENESS = 10


def disordered(seed: int, start: datetime, step: float) -> list[Any]:
    """Sixty purchases in batches of six, up to 25 seconds behind the newest, at multiples of `step`."""
    random = Random(seed)
    script: list[Any] = []
    for number in range(60):
        second = number - random.choice((0, 0, 0, 5, 10, 11, 15, 25)) + random.randrange(int(1 / step)) * step
        make = paid_back if number % 3 == 2 else bought
        script.append(make("ann", number + 1, second=start + timedelta(seconds=second)))
        if number % 6 == 5:
            script.append(random.choice((BATCH, QUIET)))
    return script


def purchases_alone(script: Script) -> list[Any]:
    return [step for step in script if not isinstance(step, Record) or step.topic is jobs.PURCHASES]


def lost(streamed: Result, batch: Result) -> set[int]:
    """The purchases that are missing in any row of the stream in which the batch has them."""
    there = {(row["user"], row["begins"]): row["amounts"] for row in streamed.rows}
    return {
        amount
        for row in batch.rows
        for amount in row["amounts"]
        if amount not in there.get((row["user"], row["begins"]), [])
    }


PAST = at(0)


def start_of(script: str) -> datetime:
    """Asked for when the test runs: only what is near the clock then is listed."""
    now = datetime.now(UTC).replace(microsecond=0)
    starts = {"past": PAST, "now": now - timedelta(seconds=50), "ahead": now + timedelta(minutes=9)}
    return starts[script]


@pytest.mark.parametrize("start", ["past", "now", "ahead"])
def test_late_is_what_misses_a_window_that_starts_every_second(kit: Kit, start: str) -> None:
    script = [*purchases_alone(disordered(1, start_of(start), 1)), END]
    job = jobs.hopping
    streamed, batch = kit.run(job, script), kit.run_as_batch(job, script)
    assert streamed.late == len(lost(streamed, batch)) > 0


@pytest.mark.parametrize("start", ["past", "now"])
def test_late_is_what_a_join_never_saw(kit: Kit, start: str) -> None:
    script = [*disordered(2, start_of(start), 0.25), END]
    result = kit.run(jobs.both, script)
    seen = {amount for row in result.rows for amount in (row["bought"], row["back"]) if amount}
    assert result.late == 60 - len(seen) > 0


def test_a_record_exactly_at_the_watermark_is_late_for_a_join_and_in_time_for_a_window(kit: Kit) -> None:
    script = [bought("ann", 1, second=20), QUIET, bought("ann", 2, second=10), END]
    joined = kit.run(jobs.both, script)
    assert [row["bought"] for row in joined.rows] == [1]
    assert joined.late == 1
    windows = kit.run(jobs.hopping, script)
    assert lost(windows, kit.run_as_batch(jobs.hopping, script)) == set()
    assert windows.late == 0


def test_a_record_behind_the_watermark_whose_window_is_open_is_not_late(kit: Kit) -> None:
    script = [bought("ann", 1, second=28), QUIET, bought("ann", 2, second=12), END]
    result = kit.run(jobs.tumbling, script)
    assert result.columns("begins", "amounts") == [(at(10), [2]), (at(20), [1])]
    assert result.late == 0


def test_late_for_duplicates_is_what_was_dropped_without_being_one(kit: Kit) -> None:
    script = [*purchases_alone(disordered(3, PAST, 0.5)), END]
    purchases = {step.value for step in script if isinstance(step, Record)}
    result = kit.run(jobs.once, script)
    assert result.late == len(purchases) - len(result.rows) > 0


def test_late_for_sessions_is_what_was_behind_the_watermark_when_one_was_refused(kit: Kit) -> None:
    """A session is open for its gap after the watermark has passed its event: so some of these still counted."""
    in_time = kit.run(jobs.sessions, [bought("ann", 1, second=20), QUIET, bought("ann", 2, second=7), END])
    assert (in_time.columns("amounts"), in_time.late) == ([([1],), ([2],)], 0)
    refused = kit.run(jobs.sessions, [bought("ann", 1, second=20), QUIET, bought("ann", 2, second=5), END])
    assert (refused.columns("amounts"), refused.late) == ([([1],)], 1)


def test_a_stateless_job_drops_nothing_however_late(kit: Kit) -> None:
    job: StreamingJob = jobs.greeted()
    result = kit.run(job, [bought("ann", 1, second=500), QUIET, bought("ann", 2, second=0)])
    assert result.columns("amount") == [(1,), (2,)]
    assert result.late == 0


def test_without_any_patience_what_is_behind_the_newest_event_is_counted_as_late(kit: Kit) -> None:
    impatient = replace(jobs.tumbling, inputs={"purchases": replace(jobs.BOUGHT, lateness="0 seconds")})
    script = [bought("ann", 1, second=20), QUIET, bought("ann", 2, second=9), bought("ann", 3, second=20), END]
    result = kit.run(impatient, script)
    assert result.columns("amounts") == [([1, 3],)]
    assert result.late == 1


def test_inputs_of_different_patience_share_the_longer_one(kit: Kit) -> None:
    patient = {"purchases": replace(jobs.BOUGHT, lateness="1 minute"), "refunds": jobs.PAID_BACK}
    script = [paid_back("bob", 9, second=60), QUIET, bought("ann", 1, second=5), END]
    result = kit.run(replace(jobs.both, inputs=patient), script)
    assert sorted(row["bought"] or 0 for row in result.rows) == [0, 1]
    assert result.late == 0
