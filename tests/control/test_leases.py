"""One owner a name; time is Postgres's; what has ended or was superseded writes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from platform_core.control import drivers, leases, positions
from platform_core.control.facts import BatchFacts
from platform_core.control.leases import Lease, driver_lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import LeaseHeld, Superseded, UsageError, WeirError
from platform_core.names import ReleaseId
from tests.control.words import facts, sleeper, until

pytestmark = pytest.mark.stack

ELSEWHERE = Owner("another-machine", 1, 1.0)


@pytest.fixture
def me() -> Owner:
    return Owner.this_process()


@pytest.fixture
def other() -> Iterator[Owner]:
    """Another living process of this machine."""
    with sleeper() as process:
        yield Owner.of(process.pid)


def expire(store: ControlStore, name: str) -> None:
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.leases set expires_at = clock_timestamp() - interval '1 ms' where name = %s", (name,)
        )


def shift(store: ControlStore, name: str, by: str) -> None:
    """What a lease looks like after Postgres's clock was set by `by`."""
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.leases set renewed_at = renewed_at - %(by)s::interval, "
            "expires_at = expires_at - %(by)s::interval where name = %(name)s",
            {"by": by, "name": name},
        )


def test_a_held_lease_is_refused_with_its_holder_and_end(
    store: ControlStore, release: ReleaseId, me: Owner, other: Owner
) -> None:
    leases.acquire(store, driver_lease(release), other, 30)
    with pytest.raises(
        LeaseHeld, match=rf"{driver_lease(release)} is held by process {other.pid} on \S+ until .* epoch 1"
    ):
        leases.acquire(store, driver_lease(release), me, 30)


def test_every_owner_gets_a_new_epoch_also_after_a_release(store: ControlStore, release: ReleaseId, me: Owner) -> None:
    epochs: list[int] = []
    for _ in range(3):
        lease = leases.acquire(store, driver_lease(release), me, 30)
        epochs.append(lease.epoch)
        leases.release(store, lease)
    assert epochs == [1, 2, 3]


def test_of_many_who_ask_at_once_one_gets_it(store: ControlStore, release: ReleaseId, me: Owner, other: Owner) -> None:
    def ask(owner: Owner) -> Lease | WeirError:
        try:
            return leases.acquire(store, driver_lease(release), owner, 30)
        except LeaseHeld as error:
            return error

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, [me, other] * 8))
    assert sum(isinstance(answer, Lease) for answer in answers) == 1


def test_a_lease_that_ran_out_goes_to_the_next_and_the_former_owner_is_told(
    store: ControlStore, release: ReleaseId, me: Owner, other: Owner
) -> None:
    former = leases.acquire(store, driver_lease(release), other, 30)
    expire(store, former.name)
    leases.acquire(store, former.name, me, 30)
    with pytest.raises(Superseded, match=f"held {former.name} with epoch 1; it belongs to .* with epoch 2"):
        leases.renew(store, former, 30)


def test_a_lease_that_ran_out_is_renewed_while_nobody_took_it(
    store: ControlStore, release: ReleaseId, me: Owner
) -> None:
    lease = leases.acquire(store, driver_lease(release), me, 30)
    expire(store, lease.name)
    assert leases.renew(store, lease, 30).valid_for() > 25


def test_a_released_lease_is_not_renewed(store: ControlStore, release: ReleaseId, me: Owner) -> None:
    lease = leases.acquire(store, driver_lease(release), me, 30)
    leases.release(store, lease)
    with pytest.raises(Superseded):
        leases.renew(store, lease, 30)


def test_a_former_owner_does_not_release_its_successors_lease(
    store: ControlStore, release: ReleaseId, me: Owner, other: Owner
) -> None:
    former = leases.acquire(store, driver_lease(release), other, 30)
    expire(store, former.name)
    leases.acquire(store, former.name, me, 30)
    leases.release(store, former)
    row = leases.current(store, former.name)
    assert row is not None
    assert row.alive
    assert row.owner == me


def test_the_lease_of_a_process_that_was_killed_is_free_at_once(
    store: ControlStore, release: ReleaseId, me: Owner
) -> None:
    with sleeper() as process:
        leases.acquire(store, driver_lease(release), Owner.of(process.pid), 3600)
        process.kill()
        process.wait()
    assert leases.acquire(store, driver_lease(release), me, 30).epoch == 2


def test_a_zombie_holds_no_lease(store: ControlStore, release: ReleaseId, me: Owner) -> None:
    with sleeper() as process:
        owner = Owner.of(process.pid)
        leases.acquire(store, driver_lease(release), owner, 3600)
        process.kill()  # and not waited for
        until(lambda: owner.gone)
        assert leases.acquire(store, driver_lease(release), me, 30).epoch == 2


def test_the_lease_of_another_machine_runs_out_and_is_never_broken(
    store: ControlStore, release: ReleaseId, me: Owner
) -> None:
    leases.acquire(store, driver_lease(release), ELSEWHERE, 30)
    with pytest.raises(LeaseHeld):
        leases.acquire(store, driver_lease(release), me, 30)


def test_a_process_that_inherited_the_pid_is_another_owner(other: Owner) -> None:
    assert replace(other, started_at=other.started_at - 1).gone


@pytest.mark.parametrize("by", ["-1 hour", "1 hour"])
def test_a_clock_that_was_set_keeps_no_dead_lease_alive(
    store: ControlStore, release: ReleaseId, me: Owner, by: str
) -> None:
    lease = leases.acquire(store, driver_lease(release), ELSEWHERE, 30)
    shift(store, lease.name, by)
    assert leases.acquire(store, lease.name, me, 30).epoch == 2


@pytest.mark.parametrize("by", ["-1 hour", "1 hour"])
def test_a_clock_that_was_set_costs_its_holder_nothing_once_it_renews(
    store: ControlStore, release: ReleaseId, me: Owner, by: str
) -> None:
    lease = leases.acquire(store, driver_lease(release), me, 30)
    shift(store, lease.name, by)
    leases.renew(store, lease, 30)
    row = leases.current(store, lease.name)
    assert row is not None
    assert row.alive
    assert row.epoch == 1


def test_a_superseded_driver_records_no_position_and_no_state(
    store: ControlStore, release: ReleaseId, me: Owner, other: Owner
) -> None:
    former = leases.acquire(store, driver_lease(release), other, 30)
    positions.record(store, former, Position(str(release), 0, {"t": {0: 5}}), facts(0), 1)
    expire(store, former.name)
    leases.acquire(store, former.name, me, 30)
    with pytest.raises(Superseded):
        positions.record(store, former, Position(str(release), 1, {"t": {0: 9}}), facts(1), 2)
    with pytest.raises(Superseded):
        drivers.report(store, release, lease=former, state="failed", permanent=True)
    newest = positions.latest(store, release)
    assert newest is not None
    assert newest[0].batch == 0
    assert drivers.get(store, release) is None


def test_a_position_is_recorded_with_the_lease_of_its_own_release(
    store: ControlStore, release: ReleaseId, me: Owner
) -> None:
    lease = leases.acquire(store, driver_lease(release), me, 30)
    with pytest.raises(UsageError, match="other@v1 came with lease"):
        positions.record(store, lease, Position("other@v1", 0, {}), facts(0))


STOPPED = """
import sys
from platform_core.control import leases, positions
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.errors import Superseded
from platform_core.names import ReleaseId
from platform_core.settings import load
from tests.control.words import facts
store, release = ControlStore.open(load()), ReleaseId.parse(sys.argv[1])
lease = leases.acquire(store, leases.driver_lease(release), Owner.this_process(), 1.0)
print("holds", flush=True)
sys.stdin.readline()
print(lease.valid_for() <= 0, flush=True)
try:
    positions.record(store, lease, Position(str(release), 7, {"t": {0: 7}}), facts(7))
except Superseded:
    print("superseded", flush=True)
"""


def test_a_process_stopped_beyond_its_lease_wakes_up_knowing_it_and_is_refused(
    store: ControlStore, release: ReleaseId, me: Owner, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-c", STOPPED, str(release)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as sleepy:
        assert sleepy.stdin is not None
        assert sleepy.stdout is not None
        assert sleepy.stdout.readline() == "holds\n"
        os.kill(sleepy.pid, signal.SIGSTOP)
        until(lambda: not alive(store, release))
        leases.acquire(store, driver_lease(release), me, 30)
        os.kill(sleepy.pid, signal.SIGCONT)
        sleepy.stdin.write("\n")
        sleepy.stdin.close()
        assert sleepy.stdout.read().split() == ["True", "superseded"]
    assert positions.latest(store, release) is None


def alive(store: ControlStore, release: ReleaseId) -> bool:
    row = leases.current(store, driver_lease(release))
    return row is not None and row.alive


def test_a_lease_counts_from_before_it_was_asked_for(store: ControlStore, release: ReleaseId, me: Owner) -> None:
    before = leases.elapsed()
    lease = leases.acquire(store, driver_lease(release), me, 30)
    assert lease.valid_until <= leases.elapsed() + 30
    assert lease.valid_until >= before + 30
    assert lease.valid_for() <= 30


def test_the_facts_of_a_position_and_its_row_are_one_transaction(
    store: ControlStore, release: ReleaseId, me: Owner
) -> None:
    lease = leases.acquire(store, driver_lease(release), me, 30)
    broken: BatchFacts = replace(facts(0), records_in="many")  # type: ignore[arg-type]
    with pytest.raises(Exception, match="many"):
        positions.record(store, lease, Position(str(release), 0, {}), broken)
    assert positions.latest(store, release) is None
