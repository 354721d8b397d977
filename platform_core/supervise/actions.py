"""Carries out what was decided: each change of a row in a transaction that checks the supervisor's own lease."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

from platform_core.control import drivers, leases, releases
from platform_core.control.drivers import Changes
from platform_core.control.leases import Lease
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.supervise.decide import (
    Action,
    Case,
    Forgive,
    GiveUp,
    KillDriver,
    Nothing,
    Retry,
    Settle,
    StartDriver,
    StopDriver,
)
from platform_core.supervise.spawn import Spawner, end_session
from platform_core.supervise.unresponsive import UnresponsiveTimers
from platform_core.telemetry import event

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Actions:
    store: ControlStore
    lease: Lease  # the supervisor's
    spawner: Spawner
    patience: UnresponsiveTimers
    may: Callable[[], bool]  # whether the supervisor's lease still holds, asked right before a process begins

    def do(self, release: ReleaseId, action: Action, case: Case) -> None:
        match action:
            case StartDriver():
                self._start(release, action)
            case StopDriver(why):
                self._signal(release, case, signal.SIGTERM, why)
            case KillDriver(why):
                self._signal(release, case, signal.SIGKILL, why)
            case Retry():
                self._retry(release, action, case)
            case GiveUp():
                self._give_up(release, action, case)
            case Forgive():
                self._put(release, failures=0, reason="")
            case Settle():
                self._clear(case)
                self._put(release, state="stopped", next_try_at=None)
            case Nothing():
                pass

    def note(self, begun: Mapping[ReleaseId, Owner]) -> None:
        """Who was begun: the next supervisor finds the process by it, even before it has taken its lease."""
        for release, owner in begun.items():
            self._put(release, owner=owner)
            event(logger, "driver begun", release=release, pid=owner.pid)

    def _start(self, release: ReleaseId, action: StartDriver) -> None:
        """The row first: should this supervisor die in between, the next one knows that a process may be on its way."""
        self._put(
            release,
            state="starting",
            owner=None,
            generation=action.generation,
            failures=action.failures,
            restarts=action.restarts,
            next_try_at=None,
            permanent=False,
            given_up=False,
        )
        self.spawner.begin(release, self.may)

    def _signal(self, release: ReleaseId, case: Case, number: signal.Signals, why: str) -> None:
        for owner in case.seen.living if self.may() else ():
            self.patience.asked(owner)
            owner.signal(number)
            event(logger, "driver signalled", release=release, pid=owner.pid, signal=number.name, why=why)

    def _retry(self, release: ReleaseId, action: Retry, case: Case) -> None:
        self._clear(case)
        self._put(
            release, state="waiting", failures=action.failures, next_try_at=action.next_try_at, reason=action.reason
        )
        fields = {"release": release, "failures": action.failures, "why": action.reason}
        event(logger, "driver failed, is tried again", level=logging.WARNING, next_try_at=action.next_try_at, **fields)

    def _give_up(self, release: ReleaseId, action: GiveUp, case: Case) -> None:
        self._clear(case)
        with self.store.transaction() as cursor:
            leases.check(cursor, self.lease)
            drivers.put(
                cursor,
                release,
                state="failed",
                failures=action.failures,
                reason=action.reason,
                permanent=action.permanent,
                given_up=True,
                next_try_at=None,
            )
            releases.fail(cursor, release, action.reason)
        fields = {"release": release, "failures": action.failures, "why": action.reason}
        event(logger, "driver given up", level=logging.ERROR, permanent=action.permanent, **fields)

    def _clear(self, case: Case) -> None:
        for owner in case.seen.lost:
            left = end_session(owner)
            if left:
                event(logger, "processes of a dead driver ended", driver=owner.pid, pids=left)

    def _put(self, release: ReleaseId, **changes: Unpack[Changes]) -> None:
        with self.store.transaction() as cursor:
            leases.check(cursor, self.lease)
            drivers.put(cursor, release, **changes)
