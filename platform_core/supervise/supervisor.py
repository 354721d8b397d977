"""Makes wanted states true: looks at each release, decides, acts; a round each second, one supervisor at a time."""

from __future__ import annotations

import logging
import signal
import threading
import time

from platform_core.control import leases, services
from platform_core.control.leases import SUPERVISOR, Lease, driver_lease, elapsed
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.cutover.reconcile import QUICK_SECONDS, Reconciler
from platform_core.errors import LeaseHeld, ServiceUnavailable, Superseded, WeirError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.supervise.actions import Actions
from platform_core.supervise.decide import Case, Limits, Seen, decide
from platform_core.supervise.snapshot import Snapshot, look
from platform_core.supervise.spawn import Command, Spawner, archived
from platform_core.supervise.unresponsive import UnresponsiveTimers
from platform_core.telemetry import event

_BEAT_SECONDS = 3.0
logger = logging.getLogger(__name__)


def limits_of(settings: Settings) -> Limits:
    asked = settings.supervision
    return Limits(
        give_up_after=asked.give_up_after,
        backoff=asked.backoff_seconds,
        backoff_limit=asked.backoff_limit_seconds,
        silence=max(30.0, 2 * asked.lease_seconds),
        spawning=asked.lease_seconds,
    )


class Supervisor:
    def __init__(
        self, settings: Settings, store: ControlStore, *, command: Command | None = None, limits: Limits | None = None
    ) -> None:
        self._store = store
        self._seconds = settings.supervision.lease_seconds
        self._poll = settings.supervision.poll_seconds
        self._limits = limits or limits_of(settings)
        self._me = Owner.this_process()
        self._spawner = Spawner(settings, command or archived(settings, store))
        self._patience = UnresponsiveTimers(most=5 * self._poll)
        self._cutovers = Reconciler(settings, store)
        self._not_to_start: frozenset[ReleaseId] = frozenset()
        self._lease: Lease | None = None
        self._seen = Snapshot()
        self._beaten = 0.0
        self._trouble: WeirError | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        """Until `stop`; then the drivers finish their batches and end."""
        while not self._stopping.is_set():
            self.round()
            self._stopping.wait(min(self._poll, QUICK_SECONDS) if self._cutovers.busy else self._poll)
        self._stop_drivers()

    def stop(self) -> None:
        self._stopping.set()

    def round(self) -> None:
        """One look at everything. What it cannot do now, the next round does."""
        self._spawner.reap()  # also while the store is away
        try:
            if self._leading():
                self._supervise()
                self._tell(None)
        except (ServiceUnavailable, Superseded) as error:
            self._tell(error)
            self._patience.blind()
            if isinstance(error, Superseded):
                self._lease = None

    def _leading(self) -> bool:
        """Whether this one is the supervisor; others wait until its lease runs out."""
        try:
            if self._lease is None:
                self._store.migrate()
                self._lease = leases.acquire(self._store, SUPERVISOR, self._me, self._seconds)
                adopted = _running(look(self._store))
                event(logger, "supervisor leads", pid=self._me.pid, epoch=self._lease.epoch, adopts=adopted)
            elif self._lease.valid_for() < self._seconds * 2 / 3:
                self._lease = leases.renew(self._store, self._lease, self._seconds)
        except LeaseHeld as error:
            self._tell(error)
            return False
        return True

    def _may(self) -> bool:
        """Right before a driver begins."""
        return self._lease is not None and self._lease.valid_for() > 0 and not self._stopping.is_set()

    def _supervise(self) -> None:
        if self._lease is None:
            return
        acts = Actions(self._store, self._lease, self._spawner, self._patience, self._may)
        acts.note(self._spawner.begun())
        self._not_to_start = self._cutovers.round()
        self._seen = look(self._store)
        self._patience.tick(elapsed())
        for release in self._seen.wanted:
            case = self._case(release)
            acts.do(release, decide(case, self._limits), case)
        self._patience.forget_all_but(self._all_living())
        self._beat()

    def _case(self, release: ReleaseId) -> Case:
        at = self._seen
        lease, driver = at.leases.get(driver_lease(release)), at.drivers.get(release)
        living = at.living(release) | self._spawner.running(release)
        self._spawner.reap()  # after that look: whoever it saw ended has an ending now
        seen = Seen(
            living=living,
            lost=frozenset(owner for owner in at.owners(release) if owner.gone),
            spawning=self._spawner.spawning(release),
            ending=self._spawner.ending(release, driver.owner if driver else None),
            silent_for=self._patience.silent_for(living, lease is not None and lease.alive and lease.owner in living),
            stopping_for=self._patience.stopping_for(living),
            withheld=release in self._not_to_start,
        )
        return Case(at.wanted.get(release), driver, lease, seen, at.now)

    def _all_living(self) -> frozenset[Owner]:
        adopted = (owner for release in self._seen.wanted for owner in self._seen.living(release))
        return frozenset(adopted) | self._spawner.running()

    def _beat(self) -> None:
        if elapsed() - self._beaten < _BEAT_SECONDS or not self._may():  # one that woke up late reports for nobody
            return
        detail = {"pid": self._me.pid, "host": self._me.host, "running": _running(self._seen)}
        services.beat(self._store, SUPERVISOR, detail)
        self._beaten = elapsed()

    def _tell(self, trouble: WeirError | None) -> None:
        """One line when its kind changes, not one a round."""
        if type(trouble) is not type(self._trouble):
            event(logger, "supervisor works" if trouble is None else "supervisor waits", why=trouble)
        self._trouble = trouble

    def _stop_drivers(self) -> None:
        """The platform goes down. Wanted states stay, so that the next supervisor starts the same releases again."""
        self._spawner.close()
        self._spawner.begun()
        owners = self._all_living()
        event(logger, "supervisor stops its drivers", pids=sorted(owner.pid for owner in owners))
        for owner in owners:
            owner.signal(signal.SIGTERM)
        for owner in self._outlasting(owners):
            event(logger, "driver killed: it does not end", level=logging.WARNING, pid=owner.pid)
            owner.signal(signal.SIGKILL)
        self._step_down()

    def _outlasting(self, owners: frozenset[Owner]) -> list[Owner]:
        """Those that still run when patience is over."""
        deadline = elapsed() + self._limits.patience
        while (running := [owner for owner in owners if owner.running]) and elapsed() < deadline:
            self._spawner.reap()
            time.sleep(0.1)
        return running

    def _step_down(self) -> None:
        try:
            if self._lease is not None:
                leases.release(self._store, self._lease)
        except ServiceUnavailable as error:
            event(logger, "supervisor could not give up its lease", level=logging.WARNING, error=error)
        self._store.close()


def _running(seen: Snapshot) -> list[str]:
    return sorted(str(release) for release in seen.wanted if seen.living(release))
