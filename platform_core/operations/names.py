"""What a name means that somebody gives: a job of the working tree, a release, or a job's live release."""

from __future__ import annotations

from collections.abc import Iterable

from platform_core.control import releases
from platform_core.control.store import ControlStore
from platform_core.declare.discover import job_names
from platform_core.errors import UsageError
from platform_core.names import ReleaseId, did_you_mean, named
from platform_core.settings import Settings


def refuse_unknown(job: str, settings: Settings, released: Iterable[str] = ()) -> None:
    """`released`: jobs that may be meant although the working tree has them no more."""
    there = sorted({*job_names(settings.root), *released})
    if job not in there:
        raise UsageError(
            f"There is no job {job!r}.{did_you_mean(job, there)}", remedy=f"Jobs: {', '.join(there) or 'none'}."
        )


def release_of(settings: Settings, store: ControlStore, name: str) -> ReleaseId:
    """The release that is named, or the live one of the job."""
    job, release = named(name)
    if release is not None:
        return releases.get(store, release).id
    if releases.live(store, job) is None:
        refuse_unknown(job, settings, (one.id.job for one in releases.all(store)))
    return releases.live_or_refused(store, job).id


def oldest_standby(store: ControlStore, job: str) -> ReleaseId:
    found = next((one.id for one in releases.of_job(store, job) if one.state == "standby"), None)
    if found is None:
        raise UsageError(f"{job} has no release on standby.", remedy="`weir status` lists its releases.")
    return found
