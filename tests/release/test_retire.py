"""A release that nobody needs is removed whole; one that somebody needs stays, and it is said who."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from platform_core.broker import Broker as Asked
from platform_core.control import clients, holds, positions, releases, wanted
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.names import ReleaseId
from platform_core.release import manifest
from platform_core.release.retire import blockers, retire
from platform_core.settings import Settings
from tests.conftest import Broker
from tests.cutover.words import Pair, aligned, ask, pair
from tests.release.conftest import Tree, environment_kept, frozen_by_hand

pytestmark = pytest.mark.stack


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """A home of its own: other tests leave broken archives in theirs."""
    password = settings.postgres.model_copy(update={"password_file": str(settings.home / "postgres.password")})
    return settings.model_copy(update={"home": tmp_path / "home", "postgres": password})


def test_a_broken_archive_of_another_job_keeps_environments_and_stops_nothing(
    settings: Settings, store: ControlStore, one: Pair
) -> None:
    torn = settings.storage.archives / "another" / "v1" / manifest.MANIFEST
    torn.parent.mkdir(parents=True)
    torn.write_text("{")
    shared = environment_kept(settings, manifest.read(settings.storage.archive(one.new.release)))
    for side in (one.new, one.old):
        side.die()
    retire(settings, store, one.new.release, "ada")
    assert not settings.storage.archive(one.new.release).exists()
    assert shared.is_dir()


@pytest.fixture
def one(store: ControlStore, tree: Tree, settings: Settings) -> Pair:
    """With all that a release has on disk and on the broker."""
    made = pair(store, ReleaseId(tree.job, 1))
    for number, side in ((1, made.old), (2, made.new)):
        frozen_by_hand(settings, tree, number)
        uri = settings.storage.table(side.release).uri
        for place in (uri, f"{uri}_lookup_sectors", settings.storage.checkpoint(side.release).uri):
            Path(place, "inner").mkdir(parents=True)
            Path(place, "inner", "file").touch()
    declared = {
        "inputs": {"sectors": {"is": "Lookup"}, "trades": {"is": "Stream"}},
        "publish": {"topic": {"name": f"{tree.job}.out"}},
    }
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.releases set manifest = manifest || jsonb_build_object('declared', %s::jsonb) where job = %s",
            (json.dumps(declared), tree.job),
        )
    return made


def group_of(broker: Broker, one: Pair) -> str:
    """Its progress, mirrored by a consumer that has gone."""
    topic, group = broker.create(f"{one.new.release.job}.in"), one.new.release.group
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    return group


def refused(settings: Settings, store: ControlStore, one: Pair) -> str:
    with pytest.raises(UsageError) as error:
        retire(settings, store, one.new.release, "ada")
    return str(error.value)


def test_nothing_of_a_retired_release_is_left(
    settings: Settings, store: ControlStore, one: Pair, broker: Broker
) -> None:
    release = one.new.release
    topic, group = broker.create(f"{release.job}.out.v2"), group_of(broker, one)
    one.new.die()
    gone = retire(settings, store, release, "ada")
    assert [line.split()[0] for line in gone] == ["lookup", "table", "topic", "group", "checkpoint", "code"]
    assert not settings.storage.table(release).exists()
    assert not settings.storage.archive(release).exists()
    assert Asked(settings).topics([topic]) == {}
    assert group not in Asked(settings).groups()
    assert releases.get(store, release).state == "retired"
    assert positions.latest(store, release) is None
    asked = wanted.of(store, release)
    assert asked is not None
    assert asked.state == "stop"
    assert settings.storage.table(one.old.release).exists(), "the other one's stays"
    assert settings.storage.archive(one.old.release).exists()


def test_what_was_built_for_it_goes_when_nobody_else_needs_it(
    settings: Settings, store: ControlStore, one: Pair, tree: Tree
) -> None:
    kept = settings.storage.comparisons(tree.job)
    old, new = one.old.release.group, one.new.release.group
    for name in (f"{old}-{new}", old, new):
        (kept / name).mkdir(parents=True)
    shared = environment_kept(settings, manifest.read(settings.storage.archive(one.new.release)))
    for side in (one.new, one.old):
        side.die()
    retire(settings, store, one.new.release, "ada")
    assert [path.name for path in kept.iterdir()] == [old]
    assert shared.is_dir(), "the other release's locks are the same"


def test_retired_again_it_removes_what_is_left(settings: Settings, store: ControlStore, one: Pair) -> None:
    one.new.die()
    retire(settings, store, one.new.release, "ada")
    left = Path(settings.storage.checkpoint(one.new.release).uri)
    left.mkdir(parents=True)
    assert retire(settings, store, one.new.release, "ada") == [f"checkpoint {left}"]
    assert retire(settings, store, one.new.release, "ada") == []


def test_whoever_needs_it_is_listed(settings: Settings, store: ControlStore, one: Pair) -> None:
    clients.bind(store, f"report_{one.table}", one.table, one.new.release, "ada")
    holds.claim(store, one.new.release, "table", "a compare", version=7)
    found = ask(one)
    told = refused(settings, store, one)
    assert f"cutover {found.id} is requested; client report_{one.table} is pinned to it; a compare holds" in told
    assert blockers(settings, store, one.old.release)[0] == f"it is the live release of {one.table}"
    assert releases.get(store, one.new.release).state == "following"
    assert settings.storage.table(one.new.release).exists()


def test_a_release_that_was_live_a_moment_ago_may_still_be_read(
    settings: Settings, store: ControlStore, one: Pair
) -> None:
    one.new.swap(protocol.flip(store, aligned(one).id))
    (why,) = blockers(settings, store, one.old.release)
    assert why.startswith("it was live until a moment ago, and readers may still read it for ")
    at_once = settings.model_copy(update={"moves": settings.moves.model_copy(update={"readers_seconds": 0.0})})
    assert blockers(at_once, store, one.old.release) == []
    with store.transaction() as cursor:
        cursor.execute("update weir.cutovers set flipped_at = flipped_at - interval '2 minutes'")
    assert blockers(settings, store, one.old.release) == []


def test_while_its_driver_runs_nothing_is_removed(settings: Settings, store: ControlStore, one: Pair) -> None:
    with pytest.raises(ServiceUnavailable, match="its driver does not end"):
        retire(settings, store, one.new.release, "ada", wait=0.1)
    assert settings.storage.table(one.new.release).exists()
    one.new.die()
    assert retire(settings, store, one.new.release, "ada")
