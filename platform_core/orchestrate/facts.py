"""What is told of a running release and of a topic: numbers that plot, one shape an asset, only when there is news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import dagster as dg

from platform_core.control.facts import METRICS, BatchFacts
from platform_core.orchestrate.observed_state import ObservedRelease, ObservedTopic

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
    seen = [batch for batch in release.batches if batch.age <= REPORT_SECONDS] or list(release.batches[-1:])
    last = [batch.facts for batch in seen]
    return {
        **{metric.plotted: _over(last, name) for name, metric in METRICS.items() if metric.plotted},
        "lag": behind if behind is not None else (last[-1].total_lag if last else 0),
        "batch": last[-1].batch if last else 0,
        "position": release.position,
        "watermark": dg.MetadataValue.timestamp(release.watermark_ms / 1000) if release.watermark_ms else "none yet",
        "watermark_behind_seconds": round(now - release.watermark_ms / 1000, 1) if release.watermark_ms else 0.0,
        "release": release.name,
    }


def _over(batches: Sequence[BatchFacts], name: str) -> float:
    """The sum of what is counted; of anything else the mean of what batches measured."""
    found = [getattr(batch, name) for batch in batches]
    measured = [value for value in found if isinstance(value, int | float)]
    if METRICS[name].counted:
        return sum(measured)
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
