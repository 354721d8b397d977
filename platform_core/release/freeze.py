"""Freezing: the working tree as it stands becomes an immutable release with the next number."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.errors import DeclarationError, SetupError
from platform_core.names import ReleaseId
from platform_core.release import topics
from platform_core.release.contents import JARS_LOCK, LOCK, archive_digest, copy, seal
from platform_core.release.declared import topics_in
from platform_core.release.manifest import CODE, MANIFEST, Manifest, Output
from platform_core.settings import Settings


@dataclass(frozen=True)
class _Told:
    """What the frozen code says of its job."""

    declared: dict[str, Any]
    fingerprint: str


def freeze(job_name: str, settings: Settings, store: ControlStore, by: str) -> Release:
    """A crash at any step leaves nothing that counts: a release is one when the control store has its row.

    1. The code is copied to a folder beside the job's releases.
    2. The copy says what it declares; one that cannot be imported is refused here.
    3. Its topics exist, and their ids are known.
    4. The manifest is written, all is made read-only, and the folder gets its number as name.
    5. The row is written.
    """
    with _alone(settings, job_name) as folder:
        fresh = folder / ".fresh"
        _remove(fresh)
        files = copy(settings.root, fresh / CODE)  # 1
        told = _told_by(fresh / CODE, job_name, settings)  # 2
        ensured = topics.ensure(settings, topics_in(told.declared))  # 3
        release = ReleaseId(job_name, releases.next_number(store, job_name))
        manifest = _manifest(release, files, told, ensured, by)
        _place(fresh, settings.archive(release), manifest)  # 4
        return releases.create(  # 5
            store,
            release,
            archive_sha256=manifest.archive_sha256,
            fingerprint=manifest.fingerprint,
            manifest=json.loads(manifest.to_json()),
            topics=dict(manifest.topics),
            by=by,
        )


@contextmanager
def _alone(settings: Settings, job: str) -> Generator[Path]:
    """One freeze of a job at a time on this machine; the store's row refuses the second of two machines."""
    folder = settings.home / "releases" / job
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".freezing").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder


def _told_by(code: Path, job: str, settings: Settings) -> _Told:
    environment = {**settings.child_environment(), "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "platform_core.release.declared", job]
    ran = subprocess.run(command, env=environment, cwd=code, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
        raise DeclarationError(
            f"job {job!r} cannot be frozen, its code does not load: {last}", remedy=f"See `weir check {job}`."
        )
    return _Told(**json.loads(ran.stdout.splitlines()[-1]))


def _manifest(release: ReleaseId, files: Mapping[str, str], told: _Told, ensured: topics.Ensured, by: str) -> Manifest:
    if LOCK not in files:
        raise SetupError(f"The tree has no {LOCK}: its environment could not be had again.", remedy="Restore the file.")
    output = told.declared["output"]
    read = {part["topic"]["name"] for part in told.declared["inputs"].values()}
    return Manifest(
        job=release.job,
        number=release.number,
        files=files,
        archive_sha256=archive_digest(files),
        requirements_sha256=files[LOCK],
        jars_sha256=files.get(JARS_LOCK, ""),
        fingerprint=told.fingerprint,
        declared=told.declared,
        topics={name: topic_id for name, topic_id in ensured.ids.items() if name in read},
        output=Output(table=output["name"], schema=output["schema"], key=tuple(output["key"])),
        warnings=ensured.warnings,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        created_by=by,
    )


def _place(fresh: Path, target: Path, manifest: Manifest) -> None:
    (fresh / MANIFEST).write_text(manifest.to_json())
    seal(fresh)
    if target.exists():  # without a row in the store it never counted: a crash left it, or the store was lost
        target.rename(target.with_name(f"abandoned-{target.name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))
    fresh.rename(target)


def _remove(folder: Path) -> None:
    """What a freeze that crashed has left, read-only or not."""
    if folder.exists():
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)
