"""Looks at the control store: the live release of each job, and whether somebody supervises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from platform_core.control import aliases, drivers, leases, positions, progress, releases, services, wanted
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.errors import WeirError
from platform_core.names import ReleaseId
from platform_core.orchestrate.observed_state import ObservedDriver, ObservedRelease, ObservedSupervisor, SeenBatch

REMEMBERED = timedelta(minutes=5)  # of batches: what "the last minutes" means in checks


@dataclass(frozen=True)
class Observation:
    """All jobs at one moment; a control store that does not answer is an observation, too."""

    supervisor: ObservedSupervisor
    releases: Mapping[str, ObservedRelease] = field(
        default_factory=dict[str, ObservedRelease]
    )  # by job, of those that have a live one


def look(store: ControlStore, jobs: Mapping[str, StreamingJob]) -> Observation:
    try:
        beat = services.all(store).get(leases.SUPERVISOR)
        return Observation(ObservedSupervisor(None if beat is None else beat.age_seconds), _releases(store, jobs))
    except WeirError as error:
        return Observation(ObservedSupervisor(trouble=str(error)))


def topic_ids(store: ControlStore, jobs: Mapping[str, StreamingJob]) -> dict[str, dict[str, str]]:
    """By topic and live release, the topic's id when the release was made; empty when the store does not answer."""
    found: dict[str, dict[str, str]] = {}
    try:
        live = aliases.resolve(store, [job.output.name for job in jobs.values()])
        for alias in live.values():
            for topic, known in releases.get(store, alias.release).topics.items():
                found.setdefault(topic, {})[str(alias.release)] = known
    except WeirError:
        return {}
    return found


def _releases(store: ControlStore, jobs: Mapping[str, StreamingJob]) -> dict[str, ObservedRelease]:
    live = aliases.resolve(store, [job.output.name for job in jobs.values()])
    with store.transaction() as cursor:
        cursor.execute("select clock_timestamp() as now")
        now: datetime = (cursor.fetchone() or {})["now"]
        asked, said = wanted.read_all(cursor), drivers.read_all(cursor)
        held = leases.among(cursor, "driver/")
    found: dict[str, ObservedRelease] = {}
    for name, job in jobs.items():
        if job.output.name in live:
            release = live[job.output.name].release
            lease = held.get(leases.driver_lease(release))
            driver = _driver(said.get(release), lease is not None and lease.alive, now)
            found[name] = _release(store, release, asked.get(release), driver, now)
    return found


def _release(
    store: ControlStore, release: ReleaseId, asked: wanted.Wanted | None, driver: ObservedDriver | None, now: datetime
) -> ObservedRelease:
    newest = positions.latest(store, release)
    batches = progress.recent(store, release, now - REMEMBERED)
    return ObservedRelease(
        str(release),
        wanted=asked.state if asked else None,
        wanted_by=asked.by if asked else "",
        wanted_age=(now - asked.at).total_seconds() if asked else 0.0,
        driver=driver,
        batches=tuple(SeenBatch((now - facts.at).total_seconds(), facts) for facts in batches),
        offsets=newest[0].offsets if newest else {},
        watermark_ms=newest[0].watermark_ms if newest else 0,
    )


def _driver(said: drivers.DriverState | None, alive: bool, now: datetime) -> ObservedDriver | None:
    if said is None:
        return None
    return ObservedDriver(
        said.state,
        lease_alive=alive,
        failures=said.failures,
        restarts=said.restarts,
        given_up=said.given_up,
        reason=said.reason,
        pid=said.pid,
        host=said.host,
        age=(now - (said.running_since or said.updated_at)).total_seconds(),
    )
