"""The names of all folders and files that the platform keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from platform_core.names import ReleaseId
from platform_core.storage.place import Place


@dataclass(frozen=True)
class Storage:
    """Tables and checkpoints may be in an object store; the rest is on this machine, in `home`."""

    home: Path
    warehouse: str = ""  # empty: in home
    checkpoints: str = ""  # empty: in home
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tables(self) -> Place:
        return Place(self.warehouse or str(self.home / "warehouse"), self.options)

    def table(self, release: ReleaseId) -> Place:
        return self.tables / release.path

    def lookup(self, release: ReleaseId, name: str) -> Place:
        """Every version of a lookup, as the release has read them."""
        return self.tables / f"{release.path}_lookup_{name}"

    def rejects(self, job: str) -> Place:
        return self.tables / f"{job}/rejects"

    def daily(self, table: str) -> Place:
        return self.tables / table

    @property
    def alias_log(self) -> Place:
        return self.tables / "aliases.jsonl"

    def checkpoint(self, release: ReleaseId) -> Place:
        return Place(self.checkpoints or str(self.home / "checkpoints"), self.options) / release.path

    @property
    def archives(self) -> Path:
        return self.home / "releases"

    def archive(self, release: ReleaseId, revision: int = 0) -> Path:
        """`v2` is what was frozen first, `v2.1` its first revision."""
        return self.archives / (f"{release.path}.{revision}" if revision else release.path)

    def revisions(self, release: ReleaseId) -> list[Path]:
        """All of them but the first."""
        return sorted((self.archives / release.job).glob(f"{release.version}.*"))

    @property
    def environments(self) -> Path:
        return self.home / "environments"

    def comparisons(self, job: str) -> Path:
        """What is kept from one comparison to the next."""
        return self.home / "comparisons" / job

    @property
    def logs(self) -> Path:
        return self.home / "logs"
