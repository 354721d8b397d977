"""A job that begins anew: readers move in one transaction, the old table stays, and nothing else may be under way."""

from __future__ import annotations

import pytest

from platform_core.control import aliases, audit, leases, releases, wanted
from platform_core.control.leases import driver_lease
from platform_core.control.owners import Owner
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Move
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.names import ReleaseId
from platform_core.release import reset as module
from platform_core.release.first import first_release
from platform_core.release.reset import reset
from platform_core.settings import Settings
from tests.control.words import created
from tests.release.conftest import Tree

pytestmark = pytest.mark.stack


@pytest.fixture
def live(settings: Settings, store: ControlStore, tree: Tree) -> Release:
    made = first_release(tree.job, settings, store, "ada")
    wanted.want(store, made.id, "run", "ada")
    return made


def test_a_job_begins_anew_and_its_old_table_stays(settings: Settings, store: ControlStore, live: Release) -> None:
    done = reset(settings, store, live.id.job, "earliest", "ada")
    assert done.new == ReleaseId(live.id.job, 2)
    alias = aliases.live(store, str(live.manifest["output"]["table"]))
    assert alias is not None
    assert (alias.release, alias.position) == (done.new, None)
    new = releases.get(store, done.new)
    assert (new.state, releases.get(store, live.id).state) == ("live", "standby")
    assert new.replay_from is not None
    assert new.replay_from.asked == "earliest"
    asked = wanted.all(store)
    assert (asked[live.id].state, asked[done.new].state) == ("stop", "run")
    assert settings.storage.archive(live.id).is_dir()
    assert audit.read(store, live.id.job)[0].action in ("reset", "run")


def test_a_driver_that_does_not_end_leaves_readers_where_they_are(
    settings: Settings, store: ControlStore, live: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.acquire(store, driver_lease(live.id), Owner.this_process(), 3600)
    ends = module.await_end
    monkeypatch.setattr(module, "await_end", lambda store, release: ends(store, release, 0.1))
    with pytest.raises(ServiceUnavailable, match="its driver does not end"):
        reset(settings, store, live.id.job, "earliest", "ada")
    assert releases.get(store, live.id).state == "live"


def test_while_something_else_changes_the_job_it_is_not_reset(
    settings: Settings, store: ControlStore, live: Release
) -> None:
    job, candidate = live.id.job, ReleaseId(live.id.job, 2)
    created(store, candidate, "following", live.manifest)
    with pytest.raises(UsageError, match=f"{candidate} is a candidate already"):
        reset(settings, store, job, "earliest", "ada")
    releases.set_state(store, candidate, "standby", "")
    protocol.request(store, [Move(live.manifest["output"]["table"], live.id, candidate)], "cutover", "bob", 60)
    with pytest.raises(UsageError, match=f"{live.id} takes part in cutover"):
        reset(settings, store, job, "earliest", "ada")
    assert len(releases.of_job(store, job)) == 2


def test_a_time_that_is_none_is_refused_before_anything_stops(
    settings: Settings, store: ControlStore, live: Release
) -> None:
    with pytest.raises(UsageError, match="--from 'yesterday' is neither"):
        reset(settings, store, live.id.job, "yesterday", "ada")
    assert wanted.all(store)[live.id].state == "run"
