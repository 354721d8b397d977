"""The alias log beside the tables, and a control store that is built again from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_core.control import aliases, releases
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import alias_log
from platform_core.errors import UsageError
from platform_core.names import ReleaseId
from platform_core.release.rebuild import rebuild
from platform_core.services import postgres as postgres_service
from platform_core.settings import Settings
from tests.conftest import Database
from tests.release.conftest import Tree, frozen_by_hand

pytestmark = pytest.mark.stack
_databases = itertools.count(1)


@pytest.fixture
def settings(platform_settings: Settings, tree: Tree, tmp_path: Path) -> Settings:
    return platform_settings.model_copy(update={"root": tree.root, "warehouse": str(tmp_path / "warehouse")})


def empty_store(postgres: Database) -> ControlStore:
    database = f"rebuilt_{next(_databases)}"
    with postgres_service.connect(postgres.settings, "postgres") as link:
        link.execute(f"create database {database}".encode())
    where = postgres.settings.postgres.model_copy(update={"database": database})
    store = ControlStore.open(postgres.settings.model_copy(update={"postgres": where}))
    store.migrate()
    return store


@pytest.fixture
def store(postgres: Database) -> Iterator[ControlStore]:
    made = empty_store(postgres)
    yield made
    made.close()


def at(release: ReleaseId) -> Position:
    return Position(str(release), 4, {"t": {0: 40}})


def shown(settings: Settings) -> list[tuple[str, str]]:
    return [(line.table, str(line.release)) for line in alias_log.read(settings)]


def test_every_move_of_an_alias_is_written_once(settings: Settings, store: ControlStore) -> None:
    v1, v2 = ReleaseId("words", 1), ReleaseId("words", 2)
    aliases.point(store, "words", v1, None, "ada")
    assert (alias_log.append(settings, store), alias_log.append(settings, store)) == (1, 0)
    aliases.point(store, "words", v2, at(v2), "ada")
    assert alias_log.append(settings, store) == 1
    assert shown(settings) == [("words", "words@v1"), ("words", "words@v2")]
    assert alias_log.read(settings)[1].position == at(v2)


def test_a_crash_after_the_write_doubles_no_line_and_a_torn_one_is_written_again(
    settings: Settings, store: ControlStore
) -> None:
    for number in (1, 2):
        aliases.point(store, "words", ReleaseId("words", number), None, "ada")
    alias_log.append(settings, store)
    log = Path(settings.storage.alias_log.uri)
    log.write_text(log.read_text()[:-20])
    with store.transaction() as cursor:
        cursor.execute("update weir.alias_history set logged = false")
    assert alias_log.append(settings, store) == 1
    assert shown(settings) == [("words", "words@v1"), ("words", "words@v2")]


def test_of_many_who_append_at_once_one_writes(settings: Settings, store: ControlStore) -> None:
    for number in range(1, 6):
        aliases.point(store, "words", ReleaseId("words", number), None, "ada")
    with ThreadPoolExecutor(4) as threads:
        written = sum(threads.map(lambda _: alias_log.append(settings, store), range(4)))
    assert written == 5
    assert len(shown(settings)) == 5


def test_a_lost_control_store_is_built_again(
    settings: Settings, store: ControlStore, postgres: Database, tree: Tree
) -> None:
    for number in (1, 2, 3):
        frozen_by_hand(settings, tree, number)
    aliases.point(store, "words", ReleaseId(tree.job, 1), None, "ada")
    aliases.point(store, "words", ReleaseId(tree.job, 2), at(ReleaseId(tree.job, 2)), "ada")
    alias_log.append(settings, store)
    fresh = empty_store(postgres)
    told = rebuild(settings, fresh, "bob")
    live = aliases.live(fresh, "words")
    assert live is not None
    assert (live.release, live.position) == (ReleaseId(tree.job, 2), at(ReleaseId(tree.job, 2)))
    assert [one.state for one in releases.of_job(fresh, tree.job)] == ["standby", "live", "failed"]
    assert len(told) == 4
    assert rebuild(settings, fresh, "bob") == []
    fresh.close()


def test_a_newer_alias_of_the_store_is_kept(settings: Settings, store: ControlStore, tree: Tree) -> None:
    for number in (1, 2):
        frozen_by_hand(settings, tree, number)
    aliases.point(store, "words", ReleaseId(tree.job, 1), None, "ada")
    alias_log.append(settings, store)
    aliases.point(store, "words", ReleaseId(tree.job, 2), None, "ada")
    rebuild(settings, store, "bob")
    live = aliases.live(store, "words")
    assert live is not None
    assert live.release.number == 2


def test_without_a_log_nothing_is_restored(settings: Settings, store: ControlStore) -> None:
    with pytest.raises(UsageError, match=r"aliases.jsonl holds no alias"):
        rebuild(settings, store, "bob")
