"""A frozen release: proven to be what was frozen, and the command that runs it from its own code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from platform_core.archived import protocol
from platform_core.archived.protocol import Verb
from platform_core.errors import ArchiveError
from platform_core.names import ReleaseId
from platform_core.release import environment, manifest
from platform_core.release.contents import archive_digest, hashes_in
from platform_core.release.manifest import CODE, Manifest
from platform_core.settings import Settings


def verify(settings: Settings, release: ReleaseId, revision: int = 0) -> Manifest:
    """The release's manifest, when every byte of its code is what was frozen."""
    folder = settings.storage.archive(release, revision)
    found = manifest.read(folder)
    if (found.release, found.revision) != (release, revision):
        raise ArchiveError(
            f"{folder} holds {found.release}.{found.revision}, not {release}.{revision}.", remedy="Restore the folder."
        )
    if archive_digest(found.files) != found.archive_sha256:
        raise ArchiveError(
            f"{folder / manifest.MANIFEST}: its list of files is not the one that was frozen.",
            remedy="Restore the file.",
        )
    _compare(folder / CODE, found.files)
    return found


def _compare(code: Path, frozen: Mapping[str, str]) -> None:
    there = hashes_in(code)
    for name in sorted(there.keys() | frozen.keys()):
        if there.get(name) != frozen.get(name):
            what, remedy = _difference(name, there, frozen)
            raise ArchiveError(f"{code / name} {what}.", remedy=remedy)


def _difference(name: str, there: Mapping[str, str], frozen: Mapping[str, str]) -> tuple[str, str]:
    if name not in there:
        return "is missing from the archive", "Restore it from a copy; the release cannot run without it."
    if name not in frozen:
        return "was not frozen with the release", "Remove it, then start the release again."
    return (
        f"was changed after it was frozen, {there[name][:12]} instead of {frozen[name][:12]}",
        "Restore it from a copy.",
    )


def python_for(settings: Settings, found: Manifest) -> Path:
    """An interpreter in an environment of the release's own lock."""
    return environment.python_of(settings, locks_of(settings, found))


def locks_of(settings: Settings, found: Manifest) -> environment.Locks:
    code = code_of(settings, found)
    return environment.Locks(code, found.protocol, found.requirements_sha256, found.jars_sha256)


def code_of(settings: Settings, found: Manifest) -> Path:
    return settings.storage.archive(found.release, found.revision) / CODE


def command_for(settings: Settings, release: ReleaseId, revision: int = 0) -> tuple[list[str], dict[str, str]]:
    """What runs the release's driver, and the whole environment that it runs in; run it in `settings.home`.

    Which revision is in force is in the release's row of the control store.
    """
    found = verify(settings, release, revision)
    python = python_for(settings, found)
    return entered(python, found, "run", str(release)), environment_for(settings, code_of(settings, found), python)


def entered(python: Path, found: Manifest, verb: Verb, *arguments: str) -> list[str]:
    """The command that does it in the archive."""
    if protocol.file_of(found.protocol, verb) not in found.files:
        raise ArchiveError(
            f"The archive of {found.release} has no program for {verb!r}, {protocol.file_of(found.protocol, verb)}: "
            "it was frozen before there was one.",
            remedy="Make a newer release of the job.",
        )
    return protocol.command(python, found.protocol, verb, *arguments)


def environment_for(settings: Settings, code: Path, python: Path) -> dict[str, str]:
    return {
        **settings.child_environment(),
        "PYTHONPATH": str(code),
        "PYTHONDONTWRITEBYTECODE": "1",  # a byte code file in the archive is a file that was not frozen
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }
