"""Folders of tables and checkpoints, on this machine or in an object store: whether they are there, and their end."""

from __future__ import annotations

import shutil
from pathlib import Path


def there(uri: str) -> bool:
    """Whether anything stands there; a folder without files counts, too."""
    if "://" not in uri:
        return Path(uri).exists()
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    return system.get_file_info(path).type != fs.FileType.NotFound


def remove(uri: str) -> bool:
    """Everything under it, also what is read-only; whether there was anything."""
    if not there(uri):
        return False
    if "://" not in uri:
        _remove_here(Path(uri))
        return True
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    system.delete_dir(path)
    return True


def _remove_here(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)
