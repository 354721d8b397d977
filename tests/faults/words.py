"""What the tests of faults say of one release's drivers."""

from __future__ import annotations

import json
import time
from pathlib import Path

from deltalake import DeltaTable

from platform_core.control import drivers, leases
from platform_core.control.drivers import DriverState
from platform_core.names import ReleaseId
from tests.stack.running import Platform, Running, until

REFUSED, KILLED = 66, -9


def said(platform: Platform, release: ReleaseId) -> DriverState:
    told = drivers.get(platform.store, release)
    assert told is not None
    return told


def refused(platform: Platform, release: ReleaseId) -> str:
    """Starts the driver, which must not start; what the platform then says of it."""
    before = platform.position(release)
    assert platform.drive(release).exit_code() == REFUSED
    told = said(platform, release)
    assert (told.state, told.permanent) == ("failed", True)
    assert platform.position(release) == before
    return told.reason


def dies(platform: Platform, release: ReleaseId, place: str) -> Running:
    """Runs it until it kills itself at that place of its third batch, which may be its second new one."""
    driver = platform.drive(release, dying=(place, "3"))
    assert driver.exit_code() == KILLED
    until(lambda: not driver.members, "its JVM ends by itself")
    return driver


def repeats(driver: Running) -> list[bool]:
    return [one["repeated"] for one in driver.events("batch committed")]


def epoch(platform: Platform, release: ReleaseId) -> int:
    row = leases.current(platform.store, leases.driver_lease(release))
    return 0 if row is None else row.epoch


def trade(**fields: object) -> bytes:
    return json.dumps({"type": "ASK", "ticker": "MMM", "price": 5000, "size": 1} | fields).encode()


def reasons(uri: str) -> list[str]:
    return DeltaTable(uri).to_pyarrow_table(columns=["reason"])["reason"].to_pylist()


def now_ms() -> int:
    return int(time.time() * 1000)


def remove_unused(folder: Path) -> None:
    """What a refused driver left there: its query's id, and nothing of a batch."""
    if folder.exists():
        assert not (folder / "offsets").exists()
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
