"""All that the control store says of the drivers, as of one moment, and which of their processes live."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from platform_core.control import drivers, leases, wanted
from platform_core.control.drivers import DriverState
from platform_core.control.leases import LeaseRow, driver_lease
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.control.wanted import Wanted
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class Snapshot:
    wanted: dict[ReleaseId, Wanted] = field(default_factory=dict[ReleaseId, Wanted])
    drivers: dict[ReleaseId, DriverState] = field(default_factory=dict[ReleaseId, DriverState])
    leases: dict[str, LeaseRow] = field(default_factory=dict[str, LeaseRow])
    now: datetime = datetime.min

    def owners(self, release: ReleaseId) -> frozenset[Owner]:
        """Who may be running it: the holder of its lease, and the process begun last, which may not have it yet."""
        driver, lease = self.drivers.get(release), self.leases.get(driver_lease(release))
        holders = {lease.owner} if lease is not None else set[Owner]()
        return frozenset(holders | ({driver.owner} if driver is not None and driver.owner is not None else set()))

    def living(self, release: ReleaseId) -> frozenset[Owner]:
        return frozenset(owner for owner in self.owners(release) if owner.running)


def look(store: ControlStore) -> Snapshot:
    with store.transaction() as cursor:
        cursor.execute("select clock_timestamp() as now")
        now: datetime = (cursor.fetchone() or {})["now"]
        return Snapshot(wanted.read_all(cursor), drivers.read_all(cursor), leases.among(cursor, "driver/"), now)
