"""A candidate is made once, from where records still are; a revision changes code and no row."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import TopicPartition

from platform_core.broker import TopicFacts
from platform_core.control import audit, releases, revisions, wanted
from platform_core.control.releases import Release
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.errors import ArchiveError, UsageError, WeirError
from platform_core.names import ReleaseId
from platform_core.release import archive, starting
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.first import first_release
from platform_core.release.manifest import CODE
from platform_core.release.revising import go_back, revise
from platform_core.release.starting import Held, moment_asked, refuse, start_of
from platform_core.settings import Settings
from tests.conftest import Broker
from tests.control.words import created
from tests.release.conftest import Tree

DAY_MS = 86_400_000
NOW = 100 * DAY_MS
ROWS = ('lines.select("line")', 'lines.select("line").distinct()')
WORDS = ("Lines, as they come.", "Lines.")


def _held(oldest: int = 0, at_ms: int = 90 * DAY_MS, retention_ms: int = -1, policy: str = "delete") -> Held:
    return Held("lines", TopicFacts("id", 1, retention_ms, policy, "CreateTime"), {0: oldest}, at_ms, {})


@pytest.mark.parametrize(
    "held",
    [_held(), _held(retention_ms=20 * DAY_MS), _held(oldest=5, policy="compact", retention_ms=DAY_MS)],
)
def test_what_the_broker_keeps_can_be_replayed(held: Held) -> None:
    refuse([held], None, "earliest", NOW)


@pytest.mark.parametrize(
    ("held", "at_ms", "said"),
    [
        (_held(oldest=7), None, r"'lines' begins \[0\] at 7: 7 records that the live release began with are gone"),
        (_held(oldest=7), 80 * DAY_MS, r"retention has left no record older than 1970-04-01 00:00 UTC"),
        (_held(retention_ms=10 * DAY_MS + 60_000), None, r"its first record goes in 60 s, before a replay could"),
        (_held(retention_ms=9 * DAY_MS), None, r"its first record is about to go"),
    ],
)
def test_what_is_gone_or_about_to_go_is_refused_with_figures(held: Held, at_ms: int | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        refuse([held], at_ms, "earliest", NOW)


def test_a_time_after_what_is_gone_can_be_replayed() -> None:
    refuse([_held(oldest=7)], 91 * DAY_MS, "then", NOW)


def test_what_the_live_release_never_read_is_not_missed() -> None:
    facts = TopicFacts("id", 1, -1, "delete", "CreateTime")
    refuse([Held("lines", facts, {0: 7}, 90 * DAY_MS, {0: 7})], None, "earliest", NOW)


def test_times_are_utc_unless_they_have_a_zone() -> None:
    assert moment_asked("earliest") is None
    assert moment_asked("1970-01-02") == DAY_MS
    assert moment_asked("1970-01-02T01:00:00+01:00") == DAY_MS
    with pytest.raises(UsageError, match="is neither 'earliest' nor a time"):
        moment_asked("yesterday")
    with pytest.raises(UsageError, match="is to come"):
        moment_asked("2999-01-01")


@pytest.fixture
def live(settings: Settings, store: ControlStore, tree: Tree) -> Release:
    return first_release(tree.job, settings, store, "ann")


def _release(tree: Tree, settings: Settings, store: ControlStore, **asked: object) -> Release:
    return release_candidate(tree.job, settings, store, "ann", CandidateOptions(**asked))  # type: ignore[arg-type]


@pytest.mark.stack
def test_a_candidate_replays_from_its_start_and_is_wanted(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    broker.produce(f"lines-{tree.job}", (None, b"a"), partition=1)
    tree.edit(*ROWS)
    made = _release(tree, settings, store, note="no doubles")
    start = StartPosition("earliest", None, {f"lines-{tree.job}": {0: 0, 1: 0}})
    assert (made.id.number, made.state, made.reason, made.replay_from) == (2, "replaying", "no doubles", start)
    assert releases.get(store, made.id) == made
    asked = wanted.of(store, made.id)
    assert asked is not None
    assert (asked.state, asked.reason) == ("run", "no doubles")
    assert [one.action for one in audit.read(store, str(made.id))] == ["run", "freeze"]
    assert releases.get(store, live.id).state == "live"
    assert ROWS[1] in (settings.storage.archive(made.id) / CODE / tree.module.relative_to(tree.root)).read_text()


@pytest.mark.stack
def test_a_candidate_has_a_topic_of_its_own_set_as_the_plain_one(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    from platform_core.broker import Broker as Facts

    _ = live
    tree.edit(*ROWS)
    made = _release(tree, settings, store)
    plain, own = f"echoes-{tree.job}", made.id.topic(f"echoes-{tree.job}")
    there = Facts(settings).topics([plain, own])
    assert own == f"{plain}.v2"
    assert (there[own].partitions, there[own].policy) == (there[plain].partitions, there[plain].policy)


@pytest.mark.stack
def test_a_time_is_kept_as_offsets(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    _ = live
    topic, at = f"lines-{tree.job}", int(time.time() * 1000) - 60_000
    broker.produce(topic, *[(None, b"old")] * 3, partition=0, at=at - 60_000)
    broker.produce(topic, *[(None, b"new")] * 2, partition=0, at=at)
    declared = {"inputs": {"lines": {"is": "Stream", "topic": {"name": topic}}}}
    asked = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at / 1000 - 1))
    found = start_of(settings, store, declared, asked, None)
    assert found.offsets == {topic: {0: 3, 1: 0}}
    assert found.at_ms == (at - 1000) // 1000 * 1000
    lookup = {"inputs": {"lines": {"is": "Lookup", "topic": {"name": topic}}}}
    assert start_of(settings, store, lookup, asked, None).offsets == {topic: {0: 0, 1: 0}}


@pytest.mark.stack
def test_a_replay_of_records_that_are_gone_is_refused(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    _ = live
    broker.produce(f"lines-{tree.job}", *[(None, b"x")] * 10, partition=0)
    for one in broker.admin.delete_records([TopicPartition(f"lines-{tree.job}", 0, 4)]).values():
        one.result(20)
    tree.edit(*ROWS)
    with pytest.raises(UsageError, match=r"begins \[0\] at 4: 4 records that the live release began with are gone"):
        _release(tree, settings, store)
    assert [one.id.number for one in releases.of_job(store, tree.job)] == [1]


@pytest.mark.stack
def test_what_needs_no_replay_is_refused_unless_again(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    with pytest.raises(UsageError, match=f"Nothing has changed since {live.id} was made"):
        _release(tree, settings, store)
    tree.edit(*WORDS)
    with pytest.raises(UsageError, match="No row would differ: comments, docstrings, imports or layout"):
        _release(tree, settings, store)
    assert _release(tree, settings, store, again=True).state == "replaying"


@pytest.mark.stack
def test_a_second_candidate_is_refused_and_the_first_named(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    _ = live
    tree.edit(*ROWS)
    first = _release(tree, settings, store)
    with pytest.raises(UsageError, match=f"{first.id} is a candidate already: replaying, made by ann"):
        _release(tree, settings, store)
    releases.set_state(store, first.id, "failed", "a test", by="ann")
    assert _release(tree, settings, store).id.number == 3


@pytest.mark.stack
def test_of_two_candidates_at_once_one_wins(store: ControlStore) -> None:
    job, refused = f"race_{time.time_ns()}", list[WeirError]()
    at_once = threading.Barrier(4)

    def nominate(number: int) -> None:
        at_once.wait()
        try:
            created(store, ReleaseId(job, number), "replaying")
        except WeirError as error:
            refused.append(error)

    releases.create(store, ReleaseId(job, 1), archive_sha256="", fingerprint="", manifest={}, topics={}, by="ann")
    threads = [threading.Thread(target=nominate, args=(number,)) for number in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert [one.state for one in releases.of_job(store, job)] == ["frozen", "replaying"]


@pytest.mark.stack
def test_a_job_without_a_live_release_is_started_instead(settings: Settings, store: ControlStore, tree: Tree) -> None:
    with pytest.raises(UsageError, match=f"`weir start {tree.job}` makes one"):
        _release(tree, settings, store)


@pytest.mark.stack
def test_a_revision_is_in_force_at_once_and_the_former_one_is_kept(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    wanted.want(store, live.id, "run", "ann")
    tree.edit(*WORDS)
    made = revise(tree.job, settings, store, "ann", "words")
    assert (made.id, made.revision, made.state, made.title) == (live.id, 1, "live", f"{live.id}.1")
    assert archive.verify(settings, live.id, 1).revision == 1
    assert archive.verify(settings, live.id).revision == 0
    asked = wanted.of(store, live.id)
    assert asked is not None
    assert (asked.generation, asked.reason) == (2, "revision 1: words")
    assert [one.number for one in revisions.of_release(store, live.id)] == [1]
    with pytest.raises(UsageError, match=f"Nothing has changed since {live.id}.1 was made"):
        revise(tree.job, settings, store, "ann", "")


@pytest.mark.stack
def test_a_revision_runs_its_own_code(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "python_for", lambda *_: "python-of-its-lock")  # pyright: ignore[reportUnknownLambdaType]
    tree.edit(*WORDS)
    made = revise(tree.job, settings, store, "ann", "")
    argv, environment = archive.command_for(settings, made.id, made.revision)
    assert argv[1:] == ["-P", "-m", "platform_core.archived.run", str(live.id)]
    assert environment["PYTHONPATH"] == str(settings.storage.archives / tree.job / "v1.1" / "code")


@pytest.mark.stack
def test_a_change_of_rows_is_no_revision(settings: Settings, store: ControlStore, tree: Tree, live: Release) -> None:
    tree.edit(*ROWS)
    with pytest.raises(
        UsageError, match=r"rows would differ: the transform's function same changed \(operator distinct"
    ):
        revise(tree.job, settings, store, "ann", "")
    assert releases.get(store, live.id).revision == 0


@pytest.mark.stack
def test_a_former_revision_comes_back_when_its_archive_is_whole(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    tree.edit(*WORDS)
    revise(tree.job, settings, store, "ann", "")
    assert go_back(tree.job, 0, settings, store, "ann", "it was worse").revision == 0
    assert audit.read(store, str(live.id))[0].detail == {"revision": 0, "reason": "it was worse"}
    with pytest.raises(UsageError, match=f"{live.id} is in force already"):
        go_back(tree.job, 0, settings, store, "ann", "")
    with pytest.raises(UsageError, match=f"There is no revision {live.id}.7"):
        go_back(tree.job, 7, settings, store, "ann", "")
    module = settings.storage.archive(live.id, 1) / CODE / tree.module.relative_to(tree.root)
    module.chmod(0o644)
    module.write_text("")
    with pytest.raises(ArchiveError, match="was changed after it was frozen"):
        go_back(tree.job, 1, settings, store, "ann", "")


def test_a_release_knows_its_candidate_topic() -> None:
    assert ReleaseId("sums", 3).topic("totals") == "totals.v3"
    assert starting.EARLIEST == "earliest"
