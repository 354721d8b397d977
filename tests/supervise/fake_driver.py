"""A driver without Spark: takes the lease, renews it, reports, obeys; or does what its job's behaviour file says."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

from platform_core.control import drivers, leases, wanted
from platform_core.control.leases import Lease
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.errors import Retryable, Superseded
from platform_core.names import ReleaseId
from platform_core.settings import Settings, load


def main(release: ReleaseId) -> int:
    settings = load()
    behaviour = (settings.home / f"{release.job}.behaviour").read_text().split()
    note(settings.home / f"{release.job}.started", str(Owner.this_process().pid))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if "stubborn" in behaviour else stop.set())
    store = ControlStore.open(settings)
    lease = leases.acquire(
        store, leases.driver_lease(release), Owner.this_process(), settings.supervision.lease_seconds
    )
    generation = asked.generation if (asked := wanted.of(store, release)) else 0
    drivers.report(store, release, lease=lease, state="running", owner=lease.owner, generation=generation)
    code = fail(store, release, lease, behaviour)
    return work(settings, store, release, lease, stop) if code is None else code


def fail(store: ControlStore, release: ReleaseId, lease: Lease, behaviour: list[str]) -> int | None:
    match behaviour:
        case ["exit", code]:
            return int(code)
        case ["permanent"]:
            drivers.report(
                store, release, lease=lease, state="failed", permanent=True, reason="topic 'stocks' was made anew"
            )
            return 66
        case ["away"]:
            drivers.report(store, release, lease=lease, state="waiting", reason="the broker does not answer")
            leases.release(store, lease)
            return 75
        case ["child"]:
            child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
            note(load().home / f"{release.job}.child", str(child.pid))
        case _:
            pass
    return None


def work(settings: Settings, store: ControlStore, release: ReleaseId, lease: Lease, stop: threading.Event) -> int:
    generation = asked.generation if (asked := wanted.of(store, release)) else 0
    while not stop.wait(0.1):
        try:
            lease = leases.renew(store, lease, settings.supervision.lease_seconds)
            now = wanted.of(store, release)
            if "stubborn" not in (settings.home / f"{release.job}.behaviour").read_text() and now is not None:
                stop.set() if now.state != "run" or now.generation != generation else None
        except Superseded:
            return 70
        except Retryable:
            continue
    note(settings.home / f"{release.job}.ended", str(lease.owner.pid))
    drivers.report(store, release, lease=lease, state="stopped")
    leases.release(store, lease)
    return 0


def note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(ReleaseId.parse(sys.argv[1])))
