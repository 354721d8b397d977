"""A release that was frozen at commit 186ad77, before archives had a version of their protocol: stock_stats@v1.

`stock_stats-v1.tar.xz` is its archive as `weir release` wrote it then, in that commit's code, byte by byte; its topics'
names have a prefix, as `tree_of_its_own` gives them, so that tests on one broker do not meet. It is never made anew.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from platform_core.control import releases
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.release import archive, topics
from platform_core.release.contents import seal
from platform_core.release.declared import topics_in
from platform_core.release.first import first_release
from platform_core.release.manifest import Manifest
from platform_core.settings import Settings

ARCHIVE = Path(__file__).with_name("stock_stats-v1.tar.xz")
RELEASE = ReleaseId("stock_stats", 1)
PREFIX = "frozen"


def unpacked(settings: Settings) -> Manifest:
    """The archive, in its place among the home's releases."""
    folder = settings.storage.archive(RELEASE)
    if not folder.exists():
        with tarfile.open(ARCHIVE) as packed:
            packed.extractall(folder.parent, filter="data")
        seal(folder)
    return archive.verify(settings, RELEASE)


def code_of_then(settings: Settings) -> Path:
    return archive.code_of(settings, unpacked(settings))


def made_live(settings: Settings, store: ControlStore, by: str) -> Release:
    """As the store of its time would know it: its row made by today's code, with the ids of today's topics."""
    manifest = unpacked(settings)
    ids = topics.ensure(settings, topics_in(manifest.declared)).ids
    row = manifest.row()
    row["topics"] = {name: ids[name] for name in manifest.topics}
    releases.create(store, RELEASE, **row, by=by)
    return first_release(RELEASE.job, settings, store, by)


def by_its_code(settings: Settings, program: str, *arguments: str, given: str = "") -> str:
    """What a few lines print that run with the archive's modules and none of today's."""
    manifest = unpacked(settings)
    environment = archive.environment_for(settings, archive.code_of(settings, manifest), Path(sys.executable))
    return ran([sys.executable, "-P", "-c", program, *arguments], environment, settings.home, given)


def ran(command: list[str], environment: dict[str, str], where: Path, given: str = "") -> str:
    done = subprocess.run(command, env=environment, cwd=where, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def last_line(printed: str) -> Any:
    return printed.strip().splitlines()[-1]
