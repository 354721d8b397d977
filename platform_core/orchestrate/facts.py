"""What is told of a running release and of a topic: numbers that plot, one shape an asset, only when there is news."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import dagster as dg

from platform_core.orchestrate.observed_state import ObservedBatch, ObservedRelease, ObservedTopic

REPORT_SECONDS = 60.0  # a materialization more often bloats the event log and wakes eager automation


@dataclass(frozen=True)
class LastReport:
    """What an asset's newest report said, kept in the sensor's cursor: of whom, where it stood, when."""

    subject: str
    place: int
    at: float

    def due(self, subject: str, place: int, now: float) -> bool:
        """Whether there is news: another subject at once, progress of the same one at most once a minute."""
        if subject != self.subject:
            return True
        return place != self.place and now - self.at >= REPORT_SECONDS


NOTHING_YET = LastReport("", 0, 0.0)


def table_facts(release: ObservedRelease, behind: int | None, now: float) -> dict[str, dg.RawMetadataValue]:
    """Of the batches since about the last report. Totals and means, so that no peak of a single batch misleads."""
    last = [batch for batch in release.batches if batch.age <= REPORT_SECONDS] or list(release.batches[-1:])
    return {
        "lag": behind if behind is not None else (last[-1].lag if last else 0),
        "rows_per_second": round(fmean(batch.records_per_second for batch in last), 1) if last else 0.0,
        "freshness_seconds": _freshness(last),
        "batch_seconds": round(fmean(batch.seconds for batch in last), 3) if last else 0.0,
        "late": sum(batch.late for batch in last),
        "rejected": sum(batch.rejected for batch in last),
        "rows_written": sum(batch.rows for batch in last),
        "batch": last[-1].number if last else 0,
        "position": release.position,
        "watermark": dg.MetadataValue.timestamp(release.watermark_ms / 1000) if release.watermark_ms else "none yet",
        "watermark_behind_seconds": round(now - release.watermark_ms / 1000, 1) if release.watermark_ms else 0.0,
        "release": release.name,
    }


def _freshness(batches: list[ObservedBatch]) -> float:
    """From a record's timestamp to readable, the mean of what batches measured."""
    measured = [batch.freshness for batch in batches if batch.freshness is not None]
    return round(fmean(measured), 3) if measured else 0.0


def live_facts(release: ObservedRelease) -> dict[str, int | str]:
    driver = release.driver
    return {
        "release": release.name,
        "pid": (driver.pid or 0) if driver else 0,
        "host": driver.host.partition("/")[0] if driver else "",
        "restarts": driver.restarts if driver else 0,
        "wanted": release.wanted or "nothing",
        "wanted_by": release.wanted_by,
    }


def topic_facts(topic: ObservedTopic) -> dict[str, int | str]:
    return {
        "records": topic.records,
        "end_offsets": topic.written,
        "partitions": len(topic.end),
        "topic_id": topic.facts.id,
    }
