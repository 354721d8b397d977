"""What holds for every job that stands under `streaming_jobs/`, whoever wrote it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from platform_core.declare import Raw, StreamingJob
from platform_core.streaming.transform.columns import check
from platform_core.testing import Crash, Kit, Result
from tests.contracts.conftest import Once
from tests.contracts.inputs import malformed, script_for


def published(result: Result) -> list[str]:
    return sorted(map(repr, result.published))


def test_its_transform_gives_the_declared_columns(job: StreamingJob, spark: SparkSession) -> None:
    assert [str(mismatch) for mismatch in check(job, spark)] == []


def test_its_input_leaves_rows(job: StreamingJob, once: Once) -> None:
    assert once(job, "stream").rows
    assert bool(once(job, "stream").published) is (job.publish is not None)


def test_stream_and_batch_agree_once_all_windows_are_closed(job: StreamingJob, once: Once) -> None:
    assert once(job, "stream").late == 0
    assert once(job, "stream").rows == once(job, "batch").rows


def test_a_malformed_record_becomes_a_reject_with_its_coordinates_and_bytes(job: StreamingJob, once: Once) -> None:
    bad = malformed(job)
    if any(isinstance(part, Raw) for part in job.inputs.values()):
        assert once(job, "stream").rejects == [], "what is landed as it is, is never malformed"
        assert (bad.key, bad.value) in [(row["key"], row["value"]) for row in once(job, "stream").rows]
        return
    (reject,) = once(job, "stream").rejects
    assert (reject.topic, reject.partition, reject.offset) == (bad.topic.name, bad.partition, bad.offset)
    assert (reject.key, reject.value) == (bad.key, bad.value)
    assert once(job, "batch").rejects == [reject]


def test_delivered_records_are_used_rejected_or_late_in_every_batch(job: StreamingJob, once: Once) -> None:
    for batch in once(job, "stream").batches:
        counted = batch.measures.used + len(batch.measures.rejects) + batch.measures.late
        assert batch.measures.records == counted, f"batch {batch.position.batch}"


@pytest.mark.again
def test_a_replay_gives_the_same_rows_and_publishes_the_same_records(job: StreamingJob, once: Once, kit: Kit) -> None:
    again = kit.run(job, script_for(job))
    assert again.rows == once(job, "stream").rows
    assert again.published == once(job, "stream").published


def test_a_crash_at_any_place_of_a_batch_changes_nothing(job: StreamingJob, crash: Crash, once: Once, kit: Kit) -> None:
    crashed = kit.run(job, script_for(job, boundary=crash))
    assert crashed.rows == once(job, "stream").rows
    assert crashed.rejects == once(job, "stream").rejects
    assert published(crashed) == published(once(job, "stream"))
