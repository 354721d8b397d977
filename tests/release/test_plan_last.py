"""The live release's transform and the tree's over the same records: what differs, by key and column."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from platform_core.broker import Broker as Facts
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.declare import RowRule, Stream, StreamingJob, Table, Topic
from platform_core.errors import BatchFailed, UsageError
from platform_core.release import archive
from platform_core.release.first import first_release
from platform_core.release.plan import wording
from platform_core.release.plan.batch import halved, times_of
from platform_core.release.plan.recent import length, newest_of, recent
from platform_core.release.plan.tree import tree_of
from platform_core.release.plan.trial import CUT, Trial, outside, sides
from platform_core.settings import Settings
from platform_core.streaming.source.parsing import taken
from platform_core.streaming.transform.query_plan import streamed
from tests.conftest import Broker
from tests.release.conftest import Tree

pytestmark = pytest.mark.timeout(900)  # each trial starts two JVMs
_COUNTS = '''
"""Lines by window, with the name of their key."""

from pyspark.sql import functions as F

from ingest.topics import LINES, NAMES
from platform_core.declare import Hours, Lookup, Stream, StreamingJob, Table

ADDED = 0


def counted(lines):
    of = lines.groupBy("key", F.window("event_time", "10 seconds")).agg(F.count("*").alias("total"))
    more = F.when(F.col("key") == "a", F.lit(ADDED)).otherwise(0)
    window = (F.col("window.start").alias("begins"), F.col("window.end").alias("ends"))
    return of.select("key", *window, (F.col("total") + more).alias("total"))


{name} = StreamingJob(
    name="{name}",
    inputs={{
        "lines": Stream(LINES, lateness="5 seconds"),
        "names": Lookup(NAMES, on="key", at="ends", takes=("name",), otherwise={{"name": "nobody"}}),
    }},
    transform=counted,
    output=Table(
        name="{name}",
        schema="key STRING, begins TIMESTAMP, ends TIMESTAMP, total BIGINT, name STRING",
        key=("key", "begins"),
        layout=Hours("begins"),
        personal=("name",),
    ),
)
'''
_TOPICS = """
from platform_core.declare import Format, Topic

LINES = Topic(name="lines-{name}", format=Format.TEXT, value="line STRING", partitions=2)
NAMES = Topic(name="names-{name}", value="name STRING", key="key", partitions=1)
"""


@pytest.mark.parametrize(
    ("text", "found"), [("1h", timedelta(hours=1)), ("30 minutes", timedelta(minutes=30)), ("2d", timedelta(days=2))]
)
def test_lengths_of_time_are_short_words(text: str, found: timedelta) -> None:
    assert length(text) == found


@pytest.mark.parametrize("text", ["", "0h", "an hour", "1y"])
def test_other_lengths_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a length of time"):
        length(text)


def test_too_many_records_of_one_moment_are_cut_in_proportion() -> None:
    start, end = {"a": {0: 0, 1: 0}, "b": {0: 50}}, {"a": {0: 100, 1: 0}, "b": {0: 150}}
    assert newest_of(start, end, 20) == {"a": {0: 90, 1: 0}, "b": {0: 140}}
    assert newest_of(start, end, 1000) == start


def test_rows_that_reach_beyond_the_records_are_cut() -> None:
    def at(second: int) -> datetime:
        return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)

    ends = pa.array([at(10), at(30), at(31), None], pa.timestamp("us", "UTC"))
    begins = pa.array([at(9), at(20), at(25), at(25)], pa.timestamp("us", "UTC"))
    rows = pa.table({"number": [1, 2, 3, 4], "begins": begins, "ends": ends})
    oldest, newest = (int(at(second).timestamp() * 1000) for second in (10, 30))
    assert outside(rows, oldest, newest) == [1, 3]
    assert outside(rows, None, None) == []


def test_a_side_has_half_of_this_machine_or_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, master in ((1, "local[1]"), (2, "local[1]"), (8, "local[4]")):
        monkeypatch.setattr("os.cpu_count", partial(int, processors))
        assert halved("local[2]") == master
    assert halved("spark://somewhere:7077") == "spark://somewhere:7077"


@pytest.mark.stack
def test_the_newest_records_are_taken_as_many_as_may_be(settings: Settings, tree: Tree, broker: Broker) -> None:
    topic, now = broker.create(f"recent-{tree.job}", 2), int(time.time() * 1000)
    for second in range(100):
        broker.produce(topic, (None, b"x"), partition=second % 2, at=now - (99 - second) * 1000)
    whole = recent(Facts(settings), [topic], [], timedelta(hours=1), 1000)
    assert (whole.records, whole.cut, whole.start) == (100, False, {topic: {0: 0, 1: 0}})
    last = recent(Facts(settings), [topic], [], timedelta(seconds=9), 1000)
    assert (last.records, last.cut) == (10, False)
    cut = recent(Facts(settings), [topic], [], timedelta(hours=1), 30)
    assert (cut.records, cut.cut, cut.start) == (30, True, {topic: {0: 35, 1: 35}})
    assert cut.covers == timedelta(milliseconds=29_999)


@pytest.mark.stack
def test_the_last_hour_of_a_silent_topic_is_its_newest_one(settings: Settings, tree: Tree, broker: Broker) -> None:
    topic = broker.create(f"silent-{tree.job}", 1, retention_ms="-1")
    broker.produce(topic, (None, b"x"), at=1_000_000_000_000)
    assert recent(Facts(settings), [topic], [], timedelta(hours=1), 10).records == 1
    with pytest.raises(UsageError, match="Nothing is in"):
        recent(Facts(settings), [broker.create(f"empty-{tree.job}", 1)], [], timedelta(hours=1), 10)


@pytest.mark.stack
def test_the_times_are_those_of_events_that_the_transform_was_given(spark: SparkSession) -> None:
    topic = Topic(name="orders", value="user STRING, at TIMESTAMP", key="user", event_time="at")
    job = StreamingJob(
        name="ordered",
        inputs={"orders": Stream(topic, lateness="8 seconds", rules=(RowRule("user is known", "user <> 'x'"),))},
        transform=lambda orders: orders.select("user", "at"),  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
        output=Table(name="ordered", schema="user STRING, at TIMESTAMP"),
    )
    stamped, plain = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC), '{{"user": "{}", "at": "{}"}}'.format
    values = [plain("a", f"2026-01-01T00:00:0{second}Z") for second in (5, 9)]
    values += [plain("a", "2030-01-01T00:00:00Z"), plain("a", "2025-01-01T00:00:00Z")]  # far ahead, late
    values += [plain("x", "2026-01-01T00:00:03Z"), "{"]
    rows = [("orders", 0, at, b"a", value.encode(), stamped) for at, value in enumerate(values)]
    shape = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY, timestamp TIMESTAMP"
    frame = streamed(job, _Given(job, spark.createDataFrame(rows, shape)))
    assert frame.toArrow().num_rows == 2
    assert times_of(job, frame) == {"oldest_ms": 1_767_225_605_000, "newest_ms": 1_767_225_609_000}


@dataclass(frozen=True)
class _Given:
    """A source of these events."""

    job: StreamingJob
    records: DataFrame

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        return taken(self.records, name, self.job.streams[name], delay)

    def lookups(self) -> DataFrame | None:
        return None


@pytest.fixture
def counts(settings: Settings, store: ControlStore, tree: Tree, broker: Broker) -> Release:
    """Live, with a minute of lines of a and b, and a name for a."""
    tree.module.write_text(_COUNTS.format(name=tree.job))
    (tree.root / "ingest" / "topics.py").write_text(_TOPICS.format(name=tree.job))
    live = first_release(tree.job, settings, store, "ann")
    now = int(time.time()) // 10 * 10_000 - 4_500  # a window's start falls on no record
    broker.produce(f"names-{tree.job}", (b"a", b'{"name": "Ann"}'), at=now - 600_000)
    for second in range(61):
        for key, partition in ((b"a", 0), (b"b", 1)):
            broker.produce(f"lines-{tree.job}", (key, b"x"), partition=partition, at=now - (60 - second) * 1000)
    return live


@pytest.fixture
def own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree's lock is made up; its environment is this one."""
    monkeypatch.setattr(archive, "python_for", lambda *_: Path(sys.executable))  # pyright: ignore[reportUnknownLambdaType]


def _tried(settings: Settings, tree: Tree, live: Release) -> Trial:
    with sides(settings, live) as both:
        return both.run(tree_of(settings, tree.job), timedelta(hours=1))()


@pytest.mark.stack
@pytest.mark.usefixtures("own_python")
def test_differing_rows_are_told_by_key_and_column_and_cut_windows_apart(
    settings: Settings, tree: Tree, counts: Release
) -> None:
    tree.edit("ADDED = 0", "ADDED = 5")
    found = _tried(settings, tree, counts)
    comparison = found.comparison
    assert (found.range.records, found.range.cut) == (122, False)
    assert comparison.rows_left == comparison.rows_right
    assert {one.name: one.changed for one in comparison.columns if one.changed} == {"total": 7}
    assert comparison.explained == {CUT: 2}
    whole = [one for one in comparison.examples if not one.because]
    assert len(whole) == 5
    assert all((one.left or {})["total"] == "10" and (one.right or {})["total"] == "15" for one in whole)
    assert {one.key["key"] for one in whole} == {"a"}
    assert {(one.left or {})["name"] for one in whole} == {"Ann"}
    assert "column total: 7 keys, by 5 at most" in list(wording.trial(found))
    archive.verify(settings, counts.id)  # running it left nothing in it


@pytest.mark.long
@pytest.mark.stack
@pytest.mark.usefixtures("own_python")
def test_a_lookups_values_are_compared_and_personal_ones_kept_from_a_pull_request(
    settings: Settings, tree: Tree, counts: Release
) -> None:
    tree.edit('"nobody"', '"no one"')
    found = _tried(settings, tree, counts)
    names, lines = wording.examples(found)
    assert names == ("key", "begins", "column", str(counts.id), "working tree")
    assert {(line[0], *line[2:]) for line in lines} == {("b", "name", "nobody", "no one")}
    _, hidden = wording.examples(found, public=True)
    assert {line[2:] for line in hidden} == {("name", "(personal)", "(personal)")}


@pytest.mark.long
@pytest.mark.stack
@pytest.mark.usefixtures("own_python")
def test_equal_code_differs_in_nothing_and_broken_code_is_named(
    settings: Settings, tree: Tree, counts: Release
) -> None:
    assert _tried(settings, tree, counts).comparison.same
    tree.edit('F.count("*")', 'F.sum("no_such_column")')
    with pytest.raises(BatchFailed, match=r"The batch of working tree failed: .*no_such_column"):
        _tried(settings, tree, counts)
