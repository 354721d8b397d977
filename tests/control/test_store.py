"""The store while Postgres is away, comes back, or is not what it should be."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_core.control import services, wanted
from platform_core.control.store import ControlStore
from platform_core.errors import ServiceUnavailable, SettingsError, SetupError
from platform_core.names import ReleaseId
from tests.control.own_postgres import OwnPostgres, own_postgres
from tests.control.words import until

pytestmark = pytest.mark.stack
RELEASE = ReleaseId("job", 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnPostgres]:
    with own_postgres(tmp_path_factory.mktemp("own")) as running:
        ControlStore.open(running.settings).migrate()
        yield running


@pytest.fixture
def own(server: OwnPostgres) -> Iterator[ControlStore]:
    store = ControlStore.open(server.settings)
    yield store
    store.close()


def works(store: ControlStore) -> bool:
    try:
        wanted.want(store, RELEASE, "run", "ada")
    except ServiceUnavailable:
        return False
    return True


def test_many_may_create_the_schema_at_once(own: ControlStore) -> None:
    with own.transaction() as cursor:
        cursor.execute("drop schema weir cascade")
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: own.migrate(), range(6)))
    assert works(own)


def test_a_server_that_is_away_is_named_at_once_and_used_again_when_back(
    server: OwnPostgres, own: ControlStore
) -> None:
    assert works(own)
    server.stop()
    with pytest.raises(ServiceUnavailable, match=f"127.0.0.1:{server.settings.postgres.port}/weir: .*refused"):
        services.all(own)
    server.start()
    assert works(own)


def test_a_restart_between_two_calls_is_not_noticed(server: OwnPostgres, own: ControlStore) -> None:
    assert works(own)
    server.stop()
    server.start()
    assert works(own)


def test_a_killed_server_is_survived(server: OwnPostgres, own: ControlStore) -> None:
    assert works(own)
    server.signal_all(signal.SIGKILL)
    until(lambda: not works(own))
    server.stop()
    server.start()
    until(lambda: works(own))


def test_a_transaction_cut_off_by_the_server_writes_nothing(own: ControlStore) -> None:
    before = wanted.of(own, RELEASE)
    with pytest.raises(ServiceUnavailable):
        stop_all_and_be_cut_off(own)
    assert wanted.of(own, RELEASE) == before


def stop_all_and_be_cut_off(store: ControlStore) -> None:
    with store.transaction() as cursor:
        cursor.execute("update weir.wanted set state = 'stop'")
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


def test_a_process_that_stops_inside_a_transaction_does_not_keep_its_locks(own: ControlStore) -> None:
    assert works(own)
    with pytest.raises(ServiceUnavailable):
        lock_and_stop(own)
    now = wanted.of(own, RELEASE)
    assert now is not None
    assert now.state == "pause"


def lock_and_stop(store: ControlStore) -> None:
    """As a driver under SIGSTOP does, with a shorter limit."""
    with store.transaction() as stopped:
        stopped.execute("set idle_in_transaction_session_timeout = '200ms'")
        stopped.execute("select * from weir.wanted for update")
        wanted.want(store, RELEASE, "pause", "bob")  # waits for the row until the other transaction is ended
        stopped.execute("select 1")


def test_a_wrong_password_is_a_matter_of_settings(server: OwnPostgres, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    where = server.settings.postgres.model_copy(update={"password_file": str(tmp_path / "password")})
    store = ControlStore.open(server.settings.model_copy(update={"postgres": where}))
    with pytest.raises(SettingsError, match=r"password authentication failed.*postgres.password_file"):
        services.all(store)


def test_a_store_without_tables_says_what_creates_them(server: OwnPostgres) -> None:
    where = server.settings.postgres.model_copy(update={"database": "dagster"})
    store = ControlStore.open(server.settings.model_copy(update={"postgres": where}))
    with pytest.raises(SetupError, match=r'/dagster: relation "weir.services" does not exist. Run `weir up`'):
        services.all(store)


def test_threads_keep_a_few_connections(own: ControlStore) -> None:
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda _: services.all(own), range(100)))
    until(lambda: connections(own) <= 4)


def connections(store: ControlStore) -> int:
    with store.transaction() as cursor:
        cursor.execute("select count(*) as n from pg_stat_activity where application_name = 'weir'")
        return int((cursor.fetchone() or {"n": 0})["n"])
