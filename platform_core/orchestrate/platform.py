"""What a code location is made of: the declared values, and the settings that say where the services are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from platform_core.control.store import ControlStore
from platform_core.declare import DailyTable, StreamingJob, Suite, Topic
from platform_core.declare.discover import load_daily_tables, load_jobs, load_suites, load_topics
from platform_core.settings import Settings


@dataclass(frozen=True)
class Platform:
    settings: Settings
    jobs: Mapping[str, StreamingJob]
    topics: Mapping[str, Topic]
    daily_tables: Mapping[str, DailyTable]
    suites: Mapping[str, Suite]

    @classmethod
    def declared(cls, settings: Settings) -> Platform:
        root = settings.root
        return cls(settings, load_jobs(root), load_topics(), load_daily_tables(root), load_suites(root))

    @cached_property
    def store(self) -> ControlStore:
        """Opened when first asked for: to load the location needs no password and no server."""
        return ControlStore.open(self.settings)

    def reads(self, job: str) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.jobs[job].topics)

    def writer_of(self, topic: str) -> StreamingJob | None:
        jobs = self.jobs.values()
        return next((job for job in jobs if topic in {one.topic.name for one in job.publishes}), None)
