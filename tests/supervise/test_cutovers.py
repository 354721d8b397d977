"""A real supervisor carries cutovers through, whoever is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from platform_core.control import aliases, releases
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.names import ReleaseId
from tests.control.words import until
from tests.cutover.words import aligned, ask, expire, pair
from tests.supervise.conftest import Stage

pytestmark = pytest.mark.stack
ELSEWHERE = Owner("another-machine", 1, 1.0)
STOCKS, WORDS = ReleaseId("stock_stats", 1), ReleaseId("word_count", 1)


def reaches(stage: Stage, found: Cutover, phase: str) -> Cutover:
    until(lambda: protocol.get(stage.store, found.id).phase == phase, 60)
    return protocol.get(stage.store, found.id)


def commit_without_record(stage: Stage, release: ReleaseId, batch: int, offset: int) -> None:
    """What a driver leaves that dies right after its commit."""
    position = Position(str(release), batch, {"t": {0: offset}})
    done = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
    write_deltalake(
        stage.settings.storage.table(release).uri, pa.table({"x": [1]}), mode="append", commit_properties=done
    )


def test_two_tables_flip_and_the_log_in_the_warehouse_says_so(stage: Stage) -> None:
    one, other = pair(stage.store, STOCKS), pair(stage.store, WORDS)
    stage.supervisor()
    found = reaches(stage, aligned(one, other), "flipped")
    one.new.swap(found)
    assert other.new.swap(found).phase == "swapped"
    log = Path(stage.settings.storage.alias_log.uri)
    until(lambda: log.is_file() and len(log.read_text().splitlines()) == 4)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(line["table"], line["release"]) for line in told[2:]} == {
        (one.table, str(one.new.release)),
        (other.table, str(other.new.release)),
    }


def test_a_cutover_past_its_deadline_leaves_everything_as_it_was(stage: Stage) -> None:
    one = pair(stage.store, STOCKS)
    found = one.old.hold(ask(one))
    expire(stage.store, found)
    stage.supervisor()
    ended = reaches(stage, found, "aborted")
    assert ended.why.endswith(f"it still waits for {one.new.release} to reach the same offsets")
    assert (one.live, one.old.state, one.new.state) == (STOCKS, "live", "following")


@pytest.mark.parametrize("phase", ["requested", "held", "aligned", "flipped"])
def test_a_supervisor_killed_at_any_step_is_followed_by_one_that_goes_on(stage: Stage, phase: str) -> None:
    one = pair(stage.store, STOCKS)
    found = ask(one)
    first = stage.supervisor()
    until(lambda: stage.leads(first), 60)
    kill_at = {"requested": 0, "held": 1, "aligned": 2, "flipped": 3}[phase]
    for step, act in enumerate((one.old.hold, lambda f: (one.new.commit(10), one.new.align(f))[1])):
        if step == kill_at:
            kill(first)
        found = act(found)
    if phase == "flipped":
        reaches(stage, found, "flipped")
    kill(first)
    stage.supervisor()
    reaches(stage, found, "flipped")
    assert one.new.swap(found).phase == "swapped"
    assert one.live == one.new.release


def kill(process: object) -> None:
    pid = getattr(process, "pid", 0)
    if getattr(process, "poll", lambda: None)() is None:
        os.kill(pid, signal.SIGKILL)
        getattr(process, "wait", lambda: None)()


def test_a_dead_live_release_is_held_at_what_its_table_has_and_not_started_until_the_flip(stage: Stage) -> None:
    """Its last commit, batch 1 at offset 20, was never recorded."""
    live = pair(stage.store, STOCKS, ELSEWHERE)  # a supervisor would end this process: it is no driver
    live.old.die()
    stage.start(STOCKS, "exit 75")
    commit_without_record(stage, STOCKS, 1, 20)
    found = ask(live)
    stage.supervisor()
    held = reaches(stage, found, "held").moves[0].paused_at
    assert held is not None
    assert held.offsets == {"t": {0: 20}}
    (stage.settings.home / f"{STOCKS.job}.behaviour").write_text("run")
    live.new.commit(20)
    live.new.align(found)
    reaches(stage, found, "flipped")
    stage.runs(STOCKS)  # as standby now
    assert releases.get(stage.store, STOCKS).state == "standby"


def test_a_driver_that_is_frozen_is_fenced_and_the_cutover_goes_on(stage: Stage) -> None:
    """SIGSTOP beyond the lease: it may wake at any time, and then writes nothing."""
    one = pair(stage.store, STOCKS)
    found = ask(one)
    with stage.store.transaction() as cursor:
        cursor.execute("update weir.leases set expires_at = clock_timestamp() where name = %s", (one.old.lease.name,))
    commit_without_record(stage, STOCKS, 0, 10)
    stage.supervisor()
    reaches(stage, found, "held")
    one.new.commit(10)
    one.new.align(found)
    reaches(stage, found, "flipped")
    assert aliases.live(stage.store, one.table) is not None
