"""Releases, wanted states, drivers, aliases, audit, heartbeats: what is written is what is read, with who and why."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from platform_core.control import aliases, audit, drivers, releases, services, wanted
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

pytestmark = pytest.mark.stack


def freeze(store: ControlStore, release: ReleaseId) -> Release:
    return releases.create(
        store,
        release,
        archive_sha256="aa",
        fingerprint="ff",
        manifest={"job": release.job},
        topics={"stocks": "id-1"},
        by="ada",
    )


def actions(store: ControlStore, subject: str) -> list[tuple[str, str, str]]:
    return [(line.who, line.action, line.subject) for line in reversed(audit.read(store, subject))]


def test_a_release_is_read_as_it_was_frozen(store: ControlStore, release: ReleaseId) -> None:
    made = freeze(store, release)
    assert (made.id, made.state, made.topics, made.manifest) == (
        release,
        "frozen",
        {"stocks": "id-1"},
        {"job": release.job},
    )
    assert releases.get(store, release) == made
    assert releases.of_job(store, release.job) == [made]
    assert made in releases.all(store)


def test_numbers_go_up_and_are_never_used_twice(store: ControlStore, release: ReleaseId) -> None:
    assert releases.next_number(store, release.job) == 1
    freeze(store, release)
    releases.set_state(store, release, "retired", "not needed")
    assert releases.next_number(store, release.job) == 2
    with pytest.raises(UsageError, match=f"Release {release} exists already"):
        freeze(store, release)


def test_of_two_who_freeze_at_once_one_wins(store: ControlStore, release: ReleaseId) -> None:
    def outcome(_: int) -> str:
        try:
            freeze(store, release)
        except UsageError:
            return "refused"
        return "frozen"

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(outcome, range(4))) == ["frozen", "refused", "refused", "refused"]


def test_an_unknown_release_is_named_with_those_that_are(store: ControlStore, release: ReleaseId) -> None:
    freeze(store, release)
    with pytest.raises(
        UsageError, match=f"There is no release {release.job}@v9. Releases of {release.job}: {release}."
    ):
        releases.get(store, ReleaseId(release.job, 9))


def test_a_state_changes_with_its_reason_and_an_audit_line(store: ControlStore, release: ReleaseId) -> None:
    freeze(store, release)
    releases.set_state(store, release, "live", "first start", by="ada")
    assert (releases.get(store, release).state, releases.get(store, release).reason) == ("live", "first start")
    assert actions(store, release.job) == [("ada", "freeze", str(release)), ("ada", "state", str(release))]


def test_every_wanted_state_leaves_who_and_why(store: ControlStore, release: ReleaseId) -> None:
    wanted.want(store, release, "run", "ada", "go")
    wanted.want(store, release, "pause", "bob", "upgrade of the broker")
    wanted.restart(store, release, "eve", "new password")
    now = wanted.of(store, release)
    assert now is not None
    assert (now.state, now.by, now.reason) == ("run", "eve", "new password")
    assert wanted.all(store)[release] == now
    assert actions(store, str(release)) == [
        ("ada", "run", str(release)),
        ("bob", "pause", str(release)),
        ("eve", "restart", str(release)),
    ]


def test_wanting_what_runs_starts_no_new_generation(store: ControlStore, release: ReleaseId) -> None:
    first = wanted.want(store, release, "run", "ada")
    assert wanted.want(store, release, "run", "bob").generation == first.generation


def test_a_restart_and_a_start_after_a_stop_are_new_generations(store: ControlStore, release: ReleaseId) -> None:
    first = wanted.want(store, release, "run", "ada")
    assert wanted.restart(store, release, "ada").generation == first.generation + 1
    assert wanted.want(store, release, "stop", "ada").generation == first.generation + 1
    assert wanted.want(store, release, "run", "ada").generation == first.generation + 2


def test_wanting_a_driver_that_was_given_up_tries_it_afresh(store: ControlStore, release: ReleaseId) -> None:
    first = wanted.want(store, release, "run", "ada")
    drivers.report(store, release, state="failed", given_up=True)
    assert wanted.want(store, release, "run", "ada").generation == first.generation + 1


def test_what_was_never_started_cannot_restart(store: ControlStore, release: ReleaseId) -> None:
    with pytest.raises(UsageError, match=f"{release} was never started. Run `weir start {release.job}`"):
        wanted.restart(store, release, "ada")


def test_a_report_changes_what_it_names_and_leaves_the_rest(store: ControlStore, release: ReleaseId) -> None:
    me = Owner.this_process()
    drivers.report(store, release, state="starting", owner=me, generation=3, failures=2)
    drivers.report(store, release, state="running", reason="")
    driver = drivers.get(store, release)
    assert driver is not None
    assert (driver.state, driver.owner, driver.generation, driver.failures) == ("running", me, 3, 2)
    assert (driver.pid, driver.host) == (me.pid, me.host.split("/")[0])
    assert drivers.all(store)[release] == driver


def test_running_since_holds_while_it_runs_and_ends_with_it(store: ControlStore, release: ReleaseId) -> None:
    def since(state: drivers.State) -> object:
        drivers.report(store, release, state=state)
        driver = drivers.get(store, release)
        assert driver is not None
        return driver.running_since

    first = since("running")
    assert first is not None
    assert since("running") == first
    assert since("stopped") is None
    assert since("running") != first


def test_an_alias_says_which_release_since_when_from_where(store: ControlStore, release: ReleaseId) -> None:
    table, second = f"table_of_{release.job}", ReleaseId(release.job, 2)
    position = Position(str(release), 7, {"t": {0: 70}}, {"t": {0: 60}}, 5, 6)
    assert aliases.live(store, table) is None
    aliases.point(store, table, release, None, "weir")
    aliases.point(store, table, second, position, "ada")
    live = aliases.live(store, table)
    assert live is not None
    assert (live.release, live.position, live.by) == (second, position, "ada")
    assert aliases.all(store)[table] == live
    assert [alias.release for alias in aliases.history(store, table)] == [second, release]
    assert actions(store, table) == [("weir", "point", table), ("ada", "point", table)]


def move_then_fail(cursor: Cursor, table: str, release: ReleaseId) -> None:
    aliases.move(cursor, table, release, None, "ada")
    releases.change(cursor, ReleaseId("unknown", 1), "live", "", by="ada")


def test_several_tables_move_together_or_not_at_all(store: ControlStore, release: ReleaseId) -> None:
    one, two, second = f"one_{release.job}", f"two_{release.job}", ReleaseId(release.job, 2)
    for table in (one, two):
        aliases.point(store, table, release, None, "weir")
    with pytest.raises(UsageError), store.transaction() as cursor:
        move_then_fail(cursor, one, second)
    assert {alias.release for alias in aliases.resolve(store, [one, two]).values()} == {release}
    with store.transaction() as cursor:
        for table in (one, two):
            aliases.move(cursor, table, second, None, "ada")
    assert {alias.release for alias in aliases.resolve(store, [one, two]).values()} == {second}


def test_the_audit_of_a_job_is_not_that_of_its_namesake(store: ControlStore, release: ReleaseId) -> None:
    wanted.want(store, ReleaseId(release.job + "0", 1), "run", "ada")
    assert audit.read(store, release.job) == []


def test_a_heartbeat_has_an_age(store: ControlStore, release: ReleaseId) -> None:
    name = f"keeper of {release.job}"
    services.beat(store, name, {"pid": 1})
    services.beat(store, name, {"pid": 2})
    found = services.all(store)[name]
    assert found.detail == {"pid": 2}
    assert 0 <= found.age_seconds < 5
