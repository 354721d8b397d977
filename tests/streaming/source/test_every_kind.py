"""The contract of a kind of input, over every kind: a topic, a topic with a raw table, and one that reads no topic."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from platform_core.control import positions
from platform_core.control.position import Position, same_place
from platform_core.control.store import ControlStore
from platform_core.errors import DeclarationError, PositionError, UsageError
from platform_core.names import ReleaseId
from platform_core.streaming.replay.by_time import Walk
from platform_core.streaming.replay.follow import arrived, next_target
from platform_core.streaming.source import release as kinds
from platform_core.streaming.source.kind import InputContext
from platform_core.streaming.source.release import inputs_of
from tests.conftest import Broker, Database
from tests.streaming.source.appended import Appended, AppendedTables
from tests.streaming.source.cases import BASE, KINDS, Case, OfTable, OfTopic, Stage
from tests.streaming.source.reading import Release, job_of

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def stage(
    postgres: Database, broker: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    settings = postgres.another(tmp_path_factory.mktemp("inputs"))
    store = ControlStore.open(settings)
    store.migrate()
    yield Stage(settings, store, broker, spark)
    store.close()


@pytest.fixture(autouse=True)
def tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.KINDS, Appended, AppendedTables)


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, stage: Stage) -> Case:
    made: Case = KINDS[request.param](stage)
    made.add(1, 2, 3)
    return made


@pytest.fixture
def live(stage: Stage, case: Case) -> Release:
    return Release(stage, job_of(case), [case])


def test_a_step_reads_up_to_its_end_and_no_further(case: Case, live: Release) -> None:
    end = live.inputs.ends(live.inputs.origin)
    case.add(4, 5)
    live.step(end)
    assert (live.rows, live.steps.at()) == ([1, 2, 3], end)
    live.step(live.inputs.ends(end))
    assert live.rows == [1, 2, 3, 4, 5]


def test_the_commit_carries_the_place_and_the_control_store_has_the_same(
    stage: Stage, case: Case, live: Release
) -> None:
    first = live.inputs.ends(live.inputs.origin)
    live.step(first)
    case.add(4)
    second = live.inputs.ends(first)
    live.step(second)
    committed, told = live.output.position(), positions.latest(stage.store, live.id)
    assert committed is not None
    assert told is not None
    assert (committed.places, committed.began, committed.batch) == (second, first, 1)
    assert (told[0], told[1]) == (committed, live.output.table.version())
    assert Position.from_json(committed.to_json()) == committed


def test_a_batch_that_a_crash_cut_off_reads_the_same_again_and_is_not_written_twice(case: Case, live: Release) -> None:
    live.step(live.inputs.ends(live.inputs.origin))
    case.add(4, 5)
    live.step(live.inputs.ends(live.steps.at()))
    live.crash_after_commit()
    case.add(6)
    live.finish()
    assert live.rows == [1, 2, 3, 4, 5]
    assert [(one.position.batch, one.measures.records, one.repeated) for one in live.outcomes] == [
        (0, 3, False),
        (1, 2, False),
        (1, 2, True),
    ]


def test_a_follower_comes_to_where_the_live_release_has_committed(stage: Stage, case: Case, live: Release) -> None:
    follower = Release(stage, job_of(case), [case])
    live.step(live.inputs.ends(live.inputs.origin))
    case.add(4, 5)
    live.step(live.inputs.ends(live.steps.at()))
    case.add(6)
    goal = next_target(follower.steps.at(), positions.history(stage.store, live.id, 10))
    assert goal is not None
    follower.go_to(goal.places)
    assert follower.rows == [1, 2, 3, 4, 5]
    assert arrived(follower.steps.at(), 0, goal)
    here, there = (positions.latest(stage.store, one.id) for one in (follower, live))
    assert here is not None
    assert there is not None
    assert same_place(here[0].places, there[0].places)


def test_what_is_left_is_counted_in_records(case: Case, live: Release) -> None:
    start = live.inputs.ends(live.inputs.origin)
    case.add(4, 5)
    (name,) = live.inputs.origin
    ends = live.inputs.ends(start)
    assert live.inputs.left(live.inputs.origin, ends) == {name: {0: 5}}
    assert live.inputs.lag(start, ends) == {name: {0: 2}}
    assert live.inputs.lag(ends, start) == {name: {0: 0}}  # the ends are looked up now and then
    assert live.inputs.lag(ends, {}) == {name: {0: 0}}


def test_a_replay_of_single_steps_reads_all_in_order(case: Case, live: Release) -> None:
    case.add(4)
    case.add(5)
    walk, goal = Walk(live.inputs, most=3), live.inputs.ends(live.inputs.origin)
    read: list[list[int]] = []
    while (at := live.at) != goal:
        bound = live.inputs.reachable(at, goal)
        live.step({**bound, **walk.target(live.inputs.paced(at), live.inputs.paced(bound))})
        read.append(live.rows)
    assert read[-1] == [1, 2, 3, 4, 5]
    assert all(len(more) - len(fewer) <= 3 for fewer, more in zip([[], *read], read, strict=False))
    assert len(read) >= 2


def test_moments_behind_a_record_dated_ahead_are_found_again_after_the_clients_were_closed(stage: Stage) -> None:
    topic, ahead = OfTopic(stage), int(time.time()) - BASE + 86_400
    topic.add(1, ahead, 3)
    inputs = Release(stage, job_of(topic), [topic]).inputs
    goal = inputs.ends(inputs.origin)
    for _ in range(2):
        since = inputs.moments(inputs.origin, goal, int(time.time() * 1000))
        assert since((BASE + 2) * 1000) == {topic.topic.name: {0: 2}}
        inputs.close()


def test_events_of_a_batch_are_counted_by_their_time_by_reading_it_again(stage: Stage, live: Release) -> None:
    live.step(live.inputs.ends(live.inputs.origin))
    (first,) = live.outcomes
    assert live.inputs.behind(stage.spark, first.position, (BASE + 2) * 1000) == 2
    assert first.measures.newest_ms == (BASE + 3) * 1000


def test_what_was_made_again_under_its_name_is_refused(case: Case, live: Release) -> None:
    live.inputs.prove()
    case.make_again()
    with pytest.raises(PositionError, match=r"when the release was made"):
        live.inputs.prove()


def test_what_is_gone_for_good_is_refused_before_a_batch_reads_it(stage: Stage, case: Case, live: Release) -> None:
    at, goal = live.inputs.origin, live.inputs.ends(live.inputs.origin)
    live.inputs.reachable(at, goal)
    case.lose()
    started_later = Release(stage, job_of(case), [case])
    with pytest.raises(PositionError, match=r"Retention has removed 3 records|was cleaned up"):
        started_later.inputs.reachable(at, goal)


def test_a_step_backwards_is_refused(live: Release) -> None:
    live.step(live.inputs.ends(live.inputs.origin))
    with pytest.raises(PositionError, match=r"the step would end at"):
        live.step(live.inputs.origin)


def test_one_job_reads_a_topic_and_a_table_and_its_position_names_both(stage: Stage) -> None:
    topic, table = OfTopic(stage), OfTable(stage)
    topic.add(1, 2)
    table.add(11, 12)
    both = Release(stage, job_of(topic, table), [topic, table])
    first = both.inputs.ends(both.inputs.origin)
    table.add(13)
    both.step(first)
    assert both.rows == [1, 2, 11, 12]
    topic.add(3)
    both.step({**both.inputs.ends(first)})
    assert both.rows == [1, 2, 3, 11, 12, 13]
    stands = both.output.position()
    assert stands is not None
    assert (set(stands.offsets), set(stands.tables)) == ({topic.topic.name}, {table.input.reads})


def test_a_job_may_read_tables_alone(stage: Stage) -> None:
    table = OfTable(stage)
    job = job_of(table)
    assert (job.streams, job.topics) == ({}, ())
    assert set(job.transformed) == {"things"}


def test_an_input_that_nothing_here_reads_is_refused_by_its_name(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(OfTable(stage))
    monkeypatch.delitem(kinds.KINDS, Appended)
    with pytest.raises(UsageError, match=r"inputs\['things'\]: nothing here reads a Appended"):
        inputs_of(InputContext(stage.settings, stage.store, job, ReleaseId(job.name, 1)))


def test_a_topic_and_a_table_of_one_name_are_not_read_by_one_job(stage: Stage) -> None:
    topic, table = OfTopic(stage), OfTable(stage)
    table.input = Appended(topic.topic.name, "id BIGINT", "", event_time="at", lateness="1 second")
    with pytest.raises(DeclarationError, match="is a topic and a table"):
        job_of(topic, table)
