"""Freezing: the working tree as it stands becomes an immutable release with the next number."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.errors import SetupError
from platform_core.names import ReleaseId
from platform_core.release import topics
from platform_core.release.contents import JARS_LOCK, LOCK, archive_digest, copy, seal
from platform_core.release.declared import topics_in
from platform_core.release.describe import Description, told
from platform_core.release.manifest import CODE, MANIFEST, FrozenOutput, Manifest
from platform_core.settings import Settings

T = TypeVar("T")


def freeze(job_name: str, settings: Settings, store: ControlStore, by: str) -> Release:
    """The tree as the job's next release, which nobody runs yet."""

    def numbered() -> Slot:
        return Slot(ReleaseId(job_name, releases.next_number(store, job_name)))

    def recorded(manifest: Manifest) -> Release:
        return releases.create(
            store,
            manifest.release,
            **manifest.row(),
            by=by,
        )

    return frozen(job_name, settings, by, numbered, recorded)


@dataclass(frozen=True)
class Slot:
    """What an archive is to be."""

    release: ReleaseId
    revision: int = 0


def frozen(
    job_name: str, settings: Settings, by: str, numbered: Callable[[], Slot], recorded: Callable[[Manifest], T]
) -> T:
    """A crash at any step leaves nothing that counts: an archive is one when the control store has its row.

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
        said = told(fresh / CODE, job_name, settings)  # 2
        ensured = topics.ensure(settings, topics_in(said.declared))  # 3
        slot = numbered()
        manifest = _manifest(slot, files, said, ensured, by)
        _place(fresh, settings.storage.archive(slot.release, slot.revision), manifest)  # 4
        return recorded(manifest)  # 5


@contextmanager
def _alone(settings: Settings, job: str) -> Generator[Path]:
    """One freeze of a job at a time on this machine; the store's row refuses the second of two machines."""
    folder = settings.storage.archives / job
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".freezing").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder


def _manifest(slot: Slot, files: Mapping[str, str], said: Description, ensured: topics.Ensured, by: str) -> Manifest:
    if LOCK not in files:
        raise SetupError(f"The tree has no {LOCK}: its environment could not be had again.", remedy="Restore the file.")
    output = said.declared["output"]
    read = {part["topic"]["name"] for part in said.declared["inputs"].values()}
    return Manifest(
        job=slot.release.job,
        number=slot.release.number,
        revision=slot.revision,
        files=files,
        archive_sha256=archive_digest(files),
        requirements_sha256=files[LOCK],
        jars_sha256=files.get(JARS_LOCK, ""),
        fingerprint=said.fingerprint,
        declared=said.declared,
        topics={name: topic_id for name, topic_id in ensured.ids.items() if name in read},
        output=FrozenOutput(table=output["name"], schema=output["schema"], key=tuple(output["key"])),
        protocol=said.protocol,
        rows_version=said.rows_version,
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
