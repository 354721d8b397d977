"""`release.json`: what was frozen, written once beside the code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from platform_core.archived import rows
from platform_core.errors import ArchiveError
from platform_core.names import ReleaseId

MANIFEST = "release.json"
CODE = "code"


@dataclass(frozen=True, kw_only=True)
class FrozenOutput:
    """The table as it was declared, for readers that load no job."""

    table: str
    schema: str
    key: tuple[str, ...]


class Row(TypedDict):
    """What the control store keeps of a manifest."""

    archive_sha256: str
    fingerprint: str
    manifest: dict[str, Any]
    topics: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    job: str
    number: int
    revision: int = 0  # of the release's code; state and table are the release's
    files: Mapping[str, str]  # path in the archive -> SHA-256
    archive_sha256: str
    requirements_sha256: str
    jars_sha256: str
    fingerprint: str
    declared: Mapping[str, Any]  # the job's declared values, for a plan to compare with
    topics: Mapping[str, str]  # input topic -> its id on the broker; a recreated topic has another
    output: FrozenOutput
    protocol: int = 0  # by which the archive is entered; platform_core/archived/protocol.py
    rows_version: int = rows.FIRST
    warnings: tuple[str, ...] = ()  # what a person should know of its topics
    created_at: str
    created_by: str

    def row(self) -> Row:
        return Row(
            archive_sha256=self.archive_sha256,
            fingerprint=self.fingerprint,
            manifest=json.loads(self.to_json()),
            topics=dict(self.topics),
        )

    @property
    def release(self) -> ReleaseId:
        return ReleaseId(self.job, self.number)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        raw = json.loads(text)
        output = raw["output"]
        raw["output"] = FrozenOutput(table=output["table"], schema=output["schema"], key=tuple(output["key"]))
        raw["warnings"] = tuple(raw.get("warnings", ()))
        return cls(**{name: raw[name] for name in raw if name in cls.__dataclass_fields__})


def read(folder: Path) -> Manifest:
    """The manifest in `folder`, the directory of one release."""
    path = folder / MANIFEST
    if not path.is_file():
        raise ArchiveError(
            f"{path} does not exist: nothing was frozen there, or it was removed.",
            remedy="Name a release that `weir status` lists, or restore the folder.",
        )
    try:
        return Manifest.from_json(path.read_text())
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(f"{path} is not a manifest: {error!r}.", remedy="Restore the file.") from error
