"""Logs stay bounded: a file that has grown too long is copied aside and cut, while its writer goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

LIMIT = 20_000_000


def bound(folder: Path, limit: int = LIMIT) -> list[Path]:
    """Those that were cut. Writers append, so they go on at the new end; lines in between may be lost."""
    long = [path for path in folder.glob("*.log") if path.stat().st_size > limit]
    for path in long:
        shutil.copyfile(path, path.with_name(path.name + ".1"))
        with path.open("r+b") as file:
            file.truncate(0)
    return long
