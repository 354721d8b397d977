"""A small tree with one job, to freeze and to change."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from platform_core.archived.protocol import PROTOCOL
from platform_core.archived.rows import ROWS_VERSION
from platform_core.control.store import ControlStore
from platform_core.release import archive
from platform_core.release.contents import JARS_LOCK, LOCK, archive_digest, copy, seal
from platform_core.release.environment import STAMP
from platform_core.release.manifest import CODE, MANIFEST, FrozenOutput, Manifest
from platform_core.settings import ROOT, Settings
from tests.conftest import Broker, Database

_TOPICS = """
from platform_core.declare import Format, Topic

LINES = Topic(name="lines-{name}", format=Format.TEXT, value="line STRING", partitions=2)
ECHOES = Topic(name="echoes-{name}", format=Format.TEXT, value="line STRING", key="line", compacted=True)
"""
_JOB = '''
"""Lines, as they come."""

from ingest.topics import ECHOES, LINES
from platform_core.declare import Publish, Stream, StreamingJob, Table, Text

GREETING = "first"


def same(lines):
    """Nothing happens to them."""
    return lines.select("line")


{name} = StreamingJob(
    name="{name}",
    inputs={{"lines": Stream(LINES)}},
    transform=same,
    output=Table(name="{name}", schema="line STRING", key=("line",)),
    publish=Publish(ECHOES, key=Text("line"), value=Text("line")),
)
'''


@dataclass(frozen=True)
class Tree:
    """A working tree whose one job has a name that nobody else uses."""

    root: Path
    job: str

    @property
    def module(self) -> Path:
        return self.root / "streaming_jobs" / self.job / "job.py"

    def edit(self, old: str, new: str) -> None:
        text = self.module.read_text()
        assert old in text
        self.module.write_text(text.replace(old, new))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root, job = tmp_path / "tree", f"echo_{uuid4().hex[:8]}"
    shutil.copytree(ROOT / "platform_core", root / "platform_core", ignore=shutil.ignore_patterns("__pycache__"))
    for package in ("ingest", "streaming_jobs", f"streaming_jobs/{job}"):
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").touch()
    (root / "ingest" / "topics.py").write_text(_TOPICS.format(name=job))
    (root / LOCK).write_text("nothing==1.0 --hash=sha256:00\n")
    made = Tree(root, job)
    made.module.write_text(_JOB.format(name=job))
    return made


@pytest.fixture
def settings(platform_settings: Settings, tree: Tree) -> Settings:
    return platform_settings.model_copy(update={"root": tree.root})


@pytest.fixture
def store(broker: Broker, postgres: Database, settings: Settings) -> Iterator[ControlStore]:
    _ = broker, postgres
    opened = ControlStore.open(settings)
    opened.migrate()
    yield opened
    opened.close()


def frozen_by_hand(settings: Settings, tree: Tree, number: int = 1) -> Manifest:
    """An archive without any service."""
    folder = settings.storage.archives / tree.job / f"v{number}"
    files = copy(tree.root, folder / CODE)
    manifest = Manifest(
        job=tree.job,
        number=number,
        files=files,
        archive_sha256=archive_digest(files),
        requirements_sha256=files[LOCK],
        jars_sha256=files.get(JARS_LOCK, ""),
        fingerprint="",
        declared={},
        topics={},
        output=FrozenOutput(table=tree.job, schema="line STRING", key=("line",)),
        protocol=PROTOCOL,
        rows_version=ROWS_VERSION,
        created_at="2026-01-01T00:00:00+00:00",
        created_by="a test",
    )
    (folder / MANIFEST).write_text(manifest.to_json())
    seal(folder)
    return manifest


def environment_kept(settings: Settings, manifest: Manifest) -> Path:
    """An environment of the release's locks, as if it had been built earlier: links to the one that runs the tests."""
    place = settings.storage.environments / archive.locks_of(settings, manifest).name
    if not place.exists():
        (place / "bin").mkdir(parents=True)
        (place / "bin" / "python").symlink_to(Path(sys.executable).resolve())
        (place / "lib").symlink_to(Path(sys.prefix) / "lib")
        shutil.copy(Path(sys.prefix) / "pyvenv.cfg", place / "pyvenv.cfg")
        (place / STAMP).write_text(manifest.requirements_sha256)
    return place
