"""The process that runs one release, in the foreground; `archived/run.py` is the program.

It takes the release's lease, proves that checkpoint, table and topics agree, and runs until SIGTERM, SIGINT, or another
wanted state; the batch in flight is finished. Exit code 0: stopped as asked. A permanent error's own code: no restart
changes it. Anything else: worth another try.
"""

from __future__ import annotations

import logging
import signal
import time

from platform_core import settings as configuration
from platform_core import telemetry
from platform_core.control import drivers, leases, wanted
from platform_core.control.leases import Lease
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.declare.discover import load_job
from platform_core.errors import LeaseHeld, Permanent, Retryable, ServiceUnavailable, WeirError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.driver.lease_monitor import LeaseMonitor
from platform_core.streaming.driver.loop import DriverLoop
from platform_core.streaming.driver.runtime import ReleaseRuntime
from platform_core.telemetry import event

logger = logging.getLogger(__name__)


class ReleaseDriver:
    def __init__(self, settings: Settings, store: ControlStore, release: ReleaseId) -> None:
        self._settings, self._store, self._release = settings, store, release
        self._job = load_job(release.job, settings.root)

    def run(self) -> None:
        """1 lease, 2 proofs, 3 Spark and sinks, 4 batches until asked to stop, 5 everything given back."""
        monitor = self._monitor(self._leased())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: monitor.stop())
        monitor.start()
        try:
            self._say(monitor, "starting")
            self._work(monitor)
            self._say(monitor, "stopped", reason="")
        except WeirError as error:
            # a service that is away is no fault of the job: the supervisor tries again for as long as it takes
            state = "waiting" if isinstance(error, ServiceUnavailable) else "failed"
            self._say(monitor, state, reason=str(error), permanent=isinstance(error, Permanent))
            raise
        finally:
            monitor.end()

    def _work(self, monitor: LeaseMonitor) -> None:
        runtime = ReleaseRuntime(self._settings, self._store, self._job, self._release, monitor)
        try:
            runtime.inputs.prove()
            runtime.open()
            self._say(monitor, "running", reason="")
            event(logger, "running", release=self._release, state=monitor.role)
            DriverLoop(runtime).run()
        except Retryable as error:
            if (lost := monitor.asked_now()) is not None:  # what looks worth another try was another owner's doing
                raise lost from error
            raise
        finally:
            runtime.close()
        if monitor.lost is not None:
            raise monitor.lost

    def _leased(self) -> Lease:
        """The lease, waited for while a former driver's runs out."""
        name, seconds = leases.driver_lease(self._release), self._settings.supervision.lease_seconds
        deadline = time.monotonic() + 2 * seconds
        while True:
            try:
                return leases.acquire(self._store, name, Owner.this_process(), seconds)
            except LeaseHeld:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _monitor(self, lease: Lease) -> LeaseMonitor:
        asked = wanted.of(self._store, self._release)
        return LeaseMonitor(self._store, self._settings, self._release, lease, asked.generation if asked else None)

    def _say(
        self, monitor: LeaseMonitor, state: drivers.State, *, reason: str | None = None, permanent: bool | None = None
    ) -> None:
        changes: drivers.Changes = {"state": state, "owner": monitor.lease.owner}
        if monitor.generation is not None:  # else the supervisor takes one begun by hand for one to be restarted
            changes["generation"] = monitor.generation
        if reason is not None:
            changes["reason"] = reason
        if permanent is not None:
            changes["permanent"] = permanent
        try:
            drivers.report(self._store, self._release, lease=monitor.lease, **changes)
        except WeirError as error:
            event(logger, "state not told", level=logging.WARNING, state=state, error=error)


def main(arguments: list[str]) -> int:
    telemetry.configure()
    try:
        release = ReleaseId.parse(arguments[0] if arguments else "")
        settings = configuration.load()
        ReleaseDriver(settings, ControlStore.open(settings), release).run()
    except WeirError as error:
        event(logger, "driver ended", level=logging.ERROR, error=error)
        return 75 if isinstance(error, Retryable) else error.exit_code
    event(logger, "driver stopped", release=release)
    return 0
