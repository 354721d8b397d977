"""What a release's archive holds: the tree's code and locks, each file by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("platform_core", "ingest", "streaming_jobs", "analytics", "quality", "infra")
LOOSE = ("requirements.lock", "pyproject.toml")
LOCK = "requirements.lock"
JARS_LOCK = "infra/locks/jars.lock.json"
_SUFFIXES = {".py", ".toml", ".lock", ".json", ".j2"}


def code_files(root: Path) -> dict[str, Path]:
    """The files to freeze, by their path in the archive."""
    found = {path.relative_to(root).as_posix(): path for package in PACKAGES for path in _within(root / package)}
    found.update({name: root / name for name in LOOSE if (root / name).is_file()})
    return dict(sorted(found.items()))


def _within(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        inner = path.relative_to(folder).parts
        if path.suffix in _SUFFIXES and path.is_file() and not any(_is_left_out(part) for part in inner):
            yield path


def _is_left_out(part: str) -> bool:
    return part.startswith(".") or part in ("__pycache__", "tests")


def copy(root: Path, target: Path) -> dict[str, str]:
    """Copies the code; each file's hash is of the bytes written, so that an edit meanwhile cannot part the two."""
    hashes: dict[str, str] = {}
    for name, source in code_files(root).items():
        content = source.read_bytes()
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        hashes[name] = sha256(content)
    return hashes


def hashes_in(folder: Path) -> dict[str, str]:
    """Every file that stands in an archive's code, whether it was frozen or not."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in files}


def seal(folder: Path) -> None:
    """Nobody writes here again. Folders too: Python would leave byte code in them."""
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def archive_digest(files: Mapping[str, str]) -> str:
    """One hash for the whole content, the same wherever and whenever it was frozen."""
    return sha256(json.dumps(sorted(files.items()), separators=(",", ":")).encode())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
