"""What a release that was frozen at 186ad77 shares with today's code is read by either as the other wrote it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from platform_core.archived.protocol import PROTOCOL
from platform_core.archived.rows import FIRST, ROWS_VERSION
from platform_core.control import aliases, drivers, leases, positions, releases, wanted
from platform_core.control.facts import BatchFacts
from platform_core.control.owners import Owner
from platform_core.control.position import Position, TableVersion
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.handover import TableAtVersion, TopicHandover
from platform_core.cutover.model import Move
from platform_core.declare import described
from platform_core.declare.schemas import columns
from platform_core.names import ReleaseId
from platform_core.release.manifest import FrozenOutput, Manifest
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.tables.delta import TableWriter as DeltaOutput
from platform_core.tables.schema import delta_schema
from streaming_jobs.stock_stats.job import stock_stats
from tests.archived.frozen import PREFIX, RELEASE, by_its_code, last_line, unpacked
from tests.conftest import Database

pytestmark = pytest.mark.ordinary  # each starts a process of the archive
JOB, V2 = RELEASE.job, ReleaseId(RELEASE.job, 2)
POSITIONS = (
    Position(str(RELEASE), 0, {}),
    Position(str(RELEASE), 7, {"frozen-stocks": {0: 12, 10: 3, 2: 0}}, {"frozen-stocks": {0: 5}}, 1_500, 2_500),
    Position(str(V2), 8, {"b.c": {0: 1}, "a": {1: 2}}, {"a": {1: 2}}, -1, 1_700_000_000_000, revision=3),
)


def test_the_manifest_of_then_is_read_and_has_the_first_versions(settings: Settings) -> None:
    manifest = unpacked(settings)
    assert (manifest.release, manifest.protocol, manifest.rows_version) == (RELEASE, 0, FIRST)
    assert manifest.output.key == ("ticker", "window_start")
    assert manifest.declared["output"]["name"] == JOB


def test_what_it_published_is_known_to_be_what_todays_code_publishes(settings: Settings) -> None:
    """A cutover from it then writes the topic's difference, and no row again that is there."""
    (publish,) = stock_stats.publishes
    named = replace(publish, topic=replace(publish.topic, name=f"{PREFIX}-{publish.topic.name}"))
    table = TableAtVersion(settings.storage.table(RELEASE), 0)
    change = TopicHandover(table, table, table, described.publishes(unpacked(settings).declared))
    assert change.alike(named)
    assert not change.alike(publish), "of another topic"
    assert not change.alike(replace(named, where="trade_count > 1"))


def test_the_manifest_of_today_is_read_by_the_code_of_then(settings: Settings) -> None:
    manifest = Manifest(
        job=JOB,
        number=2,
        files={"a": "b"},
        archive_sha256="c",
        requirements_sha256="d",
        jars_sha256="e",
        fingerprint="f",
        declared={"name": JOB},
        topics={"frozen-stocks": "id"},
        output=FrozenOutput(table=JOB, schema="a INT", key=("a",)),
        protocol=PROTOCOL,
        rows_version=ROWS_VERSION,
        created_at="2026-01-01T00:00:00+00:00",
        created_by="a test",
    )
    program = """
import sys
from platform_core.release.manifest import Manifest
print(Manifest.from_json(sys.stdin.read()).to_json())
"""
    read = json.loads(by_its_code(settings, program, given=manifest.to_json()))
    written = json.loads(manifest.to_json())
    assert {name: written[name] for name in read} == read
    assert written.keys() - read.keys() == {"protocol", "rows_version"}


_READS = """
import sys
from platform_core.control.position import Position
for line in sys.stdin:
    one = Position.from_json(line)
    print(one.to_json())
    print([one.release, one.batch, one.offsets, one.start, one.watermark_ms, one.newest_ms, one.revision])
"""


def test_positions_are_the_same_text_and_the_same_values_on_both_sides(settings: Settings) -> None:
    ours = "".join(f"{one.to_json()}\n" for one in POSITIONS)
    told = by_its_code(settings, _READS, given=ours).splitlines()
    assert told[::2] == ours.splitlines()
    assert [Position.from_json(line) for line in told[::2]] == list(POSITIONS)
    assert told[1::2] == [_values_of_then(one) for one in POSITIONS]


def test_the_code_of_then_reads_a_position_with_tables_as_one_of_its_topics(settings: Settings) -> None:
    """So that a frozen release follows one that reads a table as it follows one that reads a topic more."""
    table = {"trades": TableVersion("trades@v3", 12)}
    ours = [replace(POSITIONS[1], tables=table, tables_start=table), replace(POSITIONS[0], tables=table)]
    told = by_its_code(settings, _READS, given="".join(f"{one.to_json()}\n" for one in ours)).splitlines()
    assert told[::2] == [replace(one, tables={}, tables_start={}).to_json() for one in ours]
    assert told[1::2] == [_values_of_then(one) for one in ours]


def _values_of_then(one: Position) -> str:
    """In the order of the text."""
    one = Position.from_json(one.to_json())
    return repr([one.release, one.batch, one.offsets, one.start, one.watermark_ms, one.newest_ms, one.revision])


def test_a_table_tells_either_where_the_other_stands(settings: Settings, tmp_path: Path) -> None:
    program = """
import sys
import pyarrow as pa
from platform_core.control.position import Position
from platform_core.declare.schemas import columns
from platform_core.tables.delta import Output
from platform_core.tables.schema import delta_schema
schema = delta_schema(columns("k STRING, n BIGINT", "a test"))
theirs = Output(sys.argv[1], schema, "stock_stats@v2", key=("k",))
print(theirs.applied(), theirs.position().to_json())
mine = Output(sys.argv[2], schema, "stock_stats@v1", key=("k",))
mine.write(pa.table({"k": ["a"], "n": [1]}), 7, sys.argv[3])
"""
    schema, (_, then, now) = delta_schema(columns("k STRING, n BIGINT", "a test")), POSITIONS
    newer, older = str(tmp_path / "v2"), str(tmp_path / "v1")
    ours = DeltaOutput(Place(newer), schema, str(V2), key=("k",))
    ours.write(pa.table({"k": ["a"], "n": [1]}), 8, now.to_json())
    assert by_its_code(settings, program, newer, older, then.to_json()).split() == ["8", now.to_json()]
    theirs = DeltaOutput(Place(older), schema, str(RELEASE), key=("k",))
    assert (theirs.applied(), theirs.position()) == (7, then)


@pytest.mark.stack
def test_either_schema_may_be_made_first_and_the_other_after_it(postgres: Database, tmp_path: Path) -> None:
    program = """
from platform_core.control.store import ControlStore
from platform_core.settings import load
ControlStore.open(load()).migrate()
"""
    settings = postgres.another(tmp_path / "home")
    store = ControlStore.open(settings)
    by_its_code(settings, program)
    store.migrate()
    by_its_code(settings, program)
    assert releases.of_job(store, JOB) == []
    assert protocol.all_open(store) == []
    store.close()


_DRIVES = """
import json, sys
from datetime import UTC, datetime
from platform_core.control import aliases, cutovers, drivers, leases, positions, releases, wanted
from platform_core.control.facts import BatchFacts
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import load

store, me = ControlStore.open(load()), ReleaseId.parse(sys.argv[1])
lease = leases.acquire(store, leases.driver_lease(me), Owner.this_process(), 600)
asked = wanted.of(store, me)
drivers.report(store, me, lease=lease, state="running", owner=lease.owner, generation=asked.generation, reason="then")
position = Position.from_json(sys.argv[2])
positions.record(store, lease, position, BatchFacts(datetime.now(UTC), position.batch, 5, 3), 7)
found = cutovers.of_release(store, me)
cutovers.tell_held(store, lease, found.id, position)
row = releases.get(store, me)
(other,) = [move.new for move in found.moves]
print(json.dumps({
    "state": row.state, "topics": row.topics, "live": str(aliases.live(store, row.manifest["output"]["table"]).release),
    "other": positions.latest(store, other)[0].to_json(), "wanted": asked.state,
}))
"""


@pytest.mark.stack
def test_a_driver_of_then_and_one_of_today_carry_a_cutover_in_one_store(postgres: Database, tmp_path: Path) -> None:
    """The code of then drives the live release, today's the candidate and the flip."""
    settings = postgres.another(tmp_path / "home")
    store = ControlStore.open(settings)
    store.migrate()
    row = unpacked(settings).row()
    releases.create(store, RELEASE, **row, by="a test", state="live")
    aliases.point(store, JOB, RELEASE, None, "a test")
    wanted.want(store, RELEASE, "run", "a test")
    releases.create(store, V2, **row, by="a test", state="following")
    lease = leases.acquire(store, leases.driver_lease(V2), Owner.this_process(), 600)
    at, here = POSITIONS[1], Position(str(V2), 3, POSITIONS[1].offsets)
    positions.record(store, lease, here, BatchFacts(datetime.now(UTC), here.batch, 12, 3), 4)
    asked = protocol.request(store, [Move(JOB, RELEASE, V2)], "cutover", "a test", 600)

    told = json.loads(last_line(by_its_code(settings, _DRIVES, str(RELEASE), at.to_json())))
    assert told == {
        "state": "live",
        "topics": row["topics"],
        "live": str(RELEASE),
        "other": here.to_json(),
        "wanted": "run",
    }
    driver = drivers.get(store, RELEASE)
    assert driver is not None
    assert (driver.state, driver.reason, driver.generation) == ("running", "then", 1)
    assert positions.latest(store, RELEASE) == (at, 7)
    assert protocol.get(store, asked.id).moves[0].paused_at == at

    protocol.tell_aligned(store, lease, asked.id, here, 4)
    assert protocol.flip(store, asked.id).phase == "flipped"
    live = aliases.live(store, JOB)
    assert live is not None
    assert live.release == V2
    assert releases.get(store, RELEASE).state == "standby"
    store.close()
