"""A folder or a file, on this machine or in an object store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from platform_core.errors import SetupError

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True)
class Place:
    """`uri` is a path, or the URI of a folder in an object store; `options` are those by which delta-rs reaches it."""

    uri: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def __post_init__(self) -> None:
        """A file's URI is a path in other letters."""
        if self.uri.startswith("file:"):
            object.__setattr__(self, "uri", unquote(urlsplit(self.uri).path))

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.uri}/{name}", self.options)

    def __str__(self) -> str:
        return self.uri

    @property
    def path(self) -> Path | None:
        """On this machine; None in an object store."""
        return None if "://" in self.uri else Path(self.uri)

    @property
    def here(self) -> Path:
        """The path, for what can only work on this machine's file systems."""
        if self.path is None:
            raise SetupError(
                f"{self.uri} is in an object store, and has to be on a file system.",
                remedy="Name a folder of this machine, or one that is mounted, in the profile.",
            )
        return self.path

    def exists(self) -> bool:
        """Whether anything stands there; a folder without files counts, too."""
        if self.path is not None:
            return self.path.exists()
        system, path = self._arrow()
        return system.get_file_info(path).type.name != "NotFound"

    def remove(self) -> bool:
        """Everything under it, also what is read-only; whether there was anything."""
        if not self.exists():
            return False
        if self.path is not None:
            _remove_here(self.path)
        else:
            system, path = self._arrow()
            system.delete_dir(path)
        return True

    def text(self) -> str:
        """Of a file; nothing where there is none."""
        if not self.exists():
            return ""
        if self.path is not None:
            return self.path.read_text()
        system, path = self._arrow()
        with system.open_input_stream(path) as stream:
            return stream.read().decode()

    def append(self, text: str) -> None:
        """To a file, and on the disk once it returns. An object store cannot append: there all is written anew."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            return
        whole = self.text() + text
        system, path = self._arrow()
        folder = path.rpartition("/")[0]
        if system.get_file_info(folder).type.name == "NotFound":
            system.create_dir(folder)
        with system.open_output_stream(path) as stream:
            stream.write(whole.encode())

    def free(self) -> int | None:
        """Bytes that are left; None where that cannot be said."""
        return shutil.disk_usage(self.path).free if self.path is not None and self.path.is_dir() else None

    def table(self, version: int | None = None) -> DeltaTable:
        """The Delta table that stands there."""
        from deltalake import DeltaTable

        return DeltaTable(self.uri, version=version, storage_options=dict(self.options))

    def has_table(self) -> bool:
        from deltalake import DeltaTable

        return DeltaTable.is_deltatable(self.uri, dict(self.options))

    def files(self, table: DeltaTable) -> list[str]:
        """Of the Delta table: paths on this machine; in an object store the names within it. delta-rs tells the table's
        own place as a URI has it, with %20 for a blank, and what is in it as it stands in the log."""
        root = table.table_uri.rstrip("/") + "/"
        plain = root.removeprefix("file://")
        names = [uri.removeprefix(root).removeprefix(plain) for uri in table.file_uris()]
        return names if self.path is None else [str(self.path / name) for name in names]

    def _arrow(self) -> tuple[Any, str]:
        """Arrow's file systems take their options from the URI and the environment."""
        from pyarrow import fs

        return fs.FileSystem.from_uri(self.uri)


def _remove_here(found: Path) -> None:
    if not found.is_dir():
        found.unlink()
        return
    for path in [found, *found.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(found)
