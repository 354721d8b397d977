"""The real supervisor with drivers that need no archive, and less patience."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from platform_core import telemetry
from platform_core.control.store import ControlStore
from platform_core.errors import ArchiveError
from platform_core.names import ReleaseId
from platform_core.settings import ROOT, load
from platform_core.supervise.__main__ import supervise
from platform_core.supervise.supervisor import Supervisor, limits_of

if __name__ == "__main__":
    telemetry.configure()
    settings = load()

    def command(release: ReleaseId) -> tuple[Sequence[str], Mapping[str, str]]:
        if release.job == "broken":
            raise ArchiveError(f"{release}: job.py is not what was frozen.", remedy="Restore it.")
        argv = [sys.executable, "-m", "tests.supervise.fake_driver", str(release)]
        return argv, {**settings.child_environment(), "PYTHONPATH": str(ROOT)}

    limits = replace(limits_of(settings), silence=4.0, patience=6.0, spawning=4.0)
    supervise(Supervisor(settings, ControlStore.open(settings), command=command, limits=limits))
