"""What a name means that somebody gives: a job of the working tree, a release, or a job's live release."""

from __future__ import annotations

from collections.abc import Iterable

from platform_core.control import releases
from platform_core.declare.discover import job_names
from platform_core.errors import UsageError
from platform_core.names import ReleaseId, did_you_mean, named
from platform_core.operations import Caller


def refuse_unknown(caller: Caller, job: str, released: Iterable[str] = ()) -> None:
    """`released`: jobs that may be meant although the working tree has them no more."""
    there = sorted({*job_names(caller.settings.root), *released})
    if job not in there:
        raise UsageError(
            f"There is no job {job!r}.{did_you_mean(job, there)}", remedy=f"Jobs: {', '.join(there) or 'none'}."
        )


def jobs_of(caller: Caller, names: Iterable[str]) -> list[str]:
    """The jobs that are named, by themselves or with a release. Refused when neither tree nor control store has one."""
    jobs, released = [named(name)[0] for name in names], {one.id.job for one in releases.all(caller.store)}
    for job in jobs:
        refuse_unknown(caller, job, released)
    return jobs


def release_of(caller: Caller, name: str) -> ReleaseId:
    """The release that is named, or the live one of the job."""
    (job,) = jobs_of(caller, [name])
    release = named(name)[1]
    return releases.get(caller.store, release).id if release else releases.live_or_refused(caller.store, job).id
