"""Freezing on a real broker and control store."""

from __future__ import annotations

import stat
from typing import Any

import pytest

from platform_core.control import aliases, audit, releases
from platform_core.control.store import ControlStore
from platform_core.errors import DeclarationError, ServiceUnavailable, UsageError
from platform_core.names import ReleaseId
from platform_core.release import archive, freeze, topics
from platform_core.release.first import first_release
from platform_core.release.manifest import CODE
from platform_core.settings import Settings
from tests.conftest import Broker
from tests.release.conftest import Tree

pytestmark = pytest.mark.stack


class Crash(Exception):
    pass


def _crash(*_: Any, **__: Any) -> None:
    raise Crash


def test_a_release_holds_code_topic_ids_and_output(settings: Settings, store: ControlStore, tree: Tree) -> None:
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    manifest = archive.verify(settings, ReleaseId(tree.job, 1))
    assert (frozen.state, frozen.created_by, frozen.archive_sha256) == ("frozen", "ann", manifest.archive_sha256)
    assert frozen.topics == topics.ids(settings, [f"lines-{tree.job}"]) == dict(manifest.topics)
    assert (manifest.output.table, manifest.output.key) == (tree.job, ("line",))
    assert audit.read(store, str(frozen.id))[0].action == "freeze"


def test_nothing_in_an_archive_may_be_written(settings: Settings, store: ControlStore, tree: Tree) -> None:
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    folder = settings.storage.archive(frozen.id)
    assert not [path for path in [folder, *folder.rglob("*")] if stat.S_IMODE(path.stat().st_mode) & 0o222]


def test_the_same_content_has_the_same_hash(settings: Settings, store: ControlStore, tree: Tree) -> None:
    first, second = (freeze.freeze(tree.job, settings, store, "ann") for _ in range(2))
    assert (first.id.number, second.id.number) == (1, 2)
    assert first.archive_sha256 == second.archive_sha256
    tree.edit('"first"', '"second"')
    assert freeze.freeze(tree.job, settings, store, "ann").archive_sha256 != first.archive_sha256


@pytest.mark.parametrize("step", ["copy", "seal", "_place", "releases.create"])
def test_a_crash_leaves_nothing_that_counts(
    settings: Settings, store: ControlStore, tree: Tree, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"platform_core.release.freeze.{step}", _crash)
        with pytest.raises(Crash):
            freeze.freeze(tree.job, settings, store, "ann")
    assert releases.of_job(store, tree.job) == []
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    assert frozen.id.number == 1
    archive.verify(settings, frozen.id)


def test_code_that_does_not_load_is_not_frozen(settings: Settings, store: ControlStore, tree: Tree) -> None:
    tree.edit("GREETING = ", "GREETING = 1 / 0  # ")
    with pytest.raises(DeclarationError, match="does not load: ZeroDivisionError: division by zero"):
        freeze.freeze(tree.job, settings, store, "ann")
    assert releases.of_job(store, tree.job) == []


def test_topics_are_made_as_declared(settings: Settings, store: ControlStore, tree: Tree, broker: Broker) -> None:
    freeze.freeze(tree.job, settings, store, "ann")
    described = broker.admin.list_topics(f"lines-{tree.job}").topics[f"lines-{tree.job}"]
    assert len(described.partitions) == 2


def test_a_topic_made_again_has_another_id(settings: Settings, store: ControlStore, tree: Tree, broker: Broker) -> None:
    first = freeze.freeze(tree.job, settings, store, "ann")
    broker.delete(f"lines-{tree.job}")
    second = freeze.freeze(tree.job, settings, store, "ann")
    assert first.topics.keys() == second.topics.keys()
    assert first.topics != second.topics


def test_a_topic_that_loses_events_is_refused(
    settings: Settings, store: ControlStore, tree: Tree, broker: Broker
) -> None:
    broker.create(f"lines-{tree.job}", 2, cleanup_policy="compact")
    with pytest.raises(DeclarationError, match=r"cleanup\.policy=compact loses events"):
        freeze.freeze(tree.job, settings, store, "ann")
    assert releases.of_job(store, tree.job) == []


def test_a_topic_with_other_partitions_is_told(
    settings: Settings, store: ControlStore, tree: Tree, broker: Broker
) -> None:
    broker.create(f"lines-{tree.job}", 3)
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    assert "declared with 2 partitions, the broker has 3" in " ".join(frozen.manifest["warnings"])


def test_a_broker_that_is_away_is_named(settings: Settings, store: ControlStore, tree: Tree) -> None:
    away = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"port": 1})})
    with pytest.raises(ServiceUnavailable, match=r"Kafka at 127\.0\.0\.1:1 did not"):
        freeze.freeze(tree.job, away, store, "ann")


def test_the_first_release_is_live_and_readers_see_it(settings: Settings, store: ControlStore, tree: Tree) -> None:
    live = first_release(tree.job, settings, store, "ann")
    alias = aliases.live(store, tree.job)
    assert (str(live.id), live.state) == (f"{tree.job}@v1", "live")
    assert alias is not None
    assert alias.release == live.id
    tree.edit('"first"', '"second"')
    assert first_release(tree.job, settings, store, "ann") == live


def test_a_crash_before_the_first_release_is_live_is_completed(
    settings: Settings, store: ControlStore, tree: Tree
) -> None:
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    live = first_release(tree.job, settings, store, "ann")
    assert (live.id, live.state) == (frozen.id, "live")


def test_a_table_of_another_job_is_not_taken(settings: Settings, store: ControlStore, tree: Tree) -> None:
    other = ReleaseId("somebody_else", 1)
    aliases.point(store, tree.job, other, None, "ann")
    with pytest.raises(UsageError, match="whose live release is somebody_else@v1"):
        first_release(tree.job, settings, store, "ann")


def test_an_archive_holds_the_code_of_its_moment(settings: Settings, store: ControlStore, tree: Tree) -> None:
    frozen = freeze.freeze(tree.job, settings, store, "ann")
    tree.edit('"first"', '"second"')
    module = settings.storage.archive(frozen.id) / CODE / tree.module.relative_to(tree.root)
    assert 'GREETING = "first"' in module.read_text()
