"""What the kit promises of a run: batches, crashes, the clock, and what comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from platform_core.declare import Lookup, Publish, Stream
from platform_core.errors import DeclarationError, RejectLimitExceeded
from platform_core.testing import (
    BATCH,
    CRASH,
    CRASH_AFTER_PUBLISH,
    CRASH_AFTER_WRITE,
    END,
    QUIET,
    Crash,
    Kit,
    at,
    clock,
    record,
)
from tests.testing.jobs import NAMES, PURCHASES, TOTALS, bought, greeted, named, newest, totals, tumbling

TWO = [bought("ann", 1, second=0), bought("bob", 2, second=1)]


def test_records_without_a_boundary_are_one_batch_and_the_table_has_their_outcome(kit: Kit) -> None:
    result = kit.run(totals, TWO)
    assert result.rows == [{"user": "ann", "total": 1}, {"user": "bob", "total": 2}]
    assert [batch.measures.records for batch in result.batches if batch.measures.records] == [2]


def test_a_boundary_makes_two_batches_and_two_published_records_of_one_key(kit: Kit) -> None:
    result = kit.run(totals, [bought("ann", 1, second=0), BATCH, bought("ann", 2, second=1)])
    assert result.published == [("ann", {"total": 1}), ("ann", {"total": 3})]
    assert result.newest_published == {"ann": {"total": 3}}
    assert [batch.measures.records for batch in result.batches][:2] == [1, 1]


def test_a_topic_of_a_job_with_several_is_looked_at_by_its_name(kit: Kit) -> None:
    (all_of,) = totals.publishes
    few = Publish(replace(TOTALS, name="few"), all_of.key, all_of.value, where="total < 3")
    both = replace(totals, publish=(all_of, few))
    result = kit.run(both, [*TWO, BATCH, bought("ann", 4, second=2), CRASH_AFTER_WRITE, END])
    assert result.published_to(TOTALS) == [("ann", {"total": 1}), ("bob", {"total": 2}), ("ann", {"total": 5})]
    assert result.published_to(few.topic) == [("ann", {"total": 1}), ("bob", {"total": 2}), ("ann", None)]


def test_what_each_batch_wrote_can_be_told_apart(kit: Kit) -> None:
    script = [*TWO, bought("ann", 4, second=2)]
    result = kit.run(totals, script, each=BATCH)
    assert [batch.rows for batch in result.written] == [
        [{"user": "ann", "total": 1}],
        [{"user": "bob", "total": 2}],
        [{"user": "ann", "total": 5}],
    ]
    assert [batch.published for batch in result.written][2] == [("ann", {"total": 5})]
    assert [batch.rows for batch in kit.run(totals, script).written] == [
        [{"user": "ann", "total": 5}, {"user": "bob", "total": 2}]
    ]


def test_after_each_record_the_stream_comes_to_rest(kit: Kit) -> None:
    script = [bought("ann", 1, second=second) for second in (0, 60, 1)]
    assert kit.run(tumbling, script, each=BATCH).late + kit.run(tumbling, script).late == 0
    assert kit.run(tumbling, script, each=QUIET).late == 1


@pytest.mark.parametrize("crash", Crash)
def test_a_crash_anywhere_in_a_batch_changes_nothing(kit: Kit, crash: Crash) -> None:
    script = [*TWO, record(PURCHASES, key=b"x", value=b"{"), crash, bought("ann", 4, second=2)]
    result = kit.run(totals, script)
    assert result.columns("user", "total") == [("ann", 5), ("bob", 2)]
    assert result.published == [("ann", {"total": 1}), ("bob", {"total": 2}), ("ann", {"total": 5})]
    assert len(result.rejects) == 1
    first = result.batches[0]
    written = crash in (CRASH_AFTER_WRITE, CRASH_AFTER_PUBLISH)
    assert first.repeated is written
    assert first.published == (0 if crash is CRASH_AFTER_PUBLISH else 2)


def test_a_crash_after_a_boundary_kills_the_process_between_two_batches(kit: Kit) -> None:
    result = kit.run(totals, [*TWO, BATCH, CRASH, bought("ann", 4, second=2)])
    assert result.columns("user", "total") == [("ann", 5), ("bob", 2)]
    assert not any(batch.repeated for batch in result.batches)


def test_the_clock_closes_windows_without_a_record(kit: Kit) -> None:
    open_still = kit.run(tumbling, [bought("ann", 1, second=5)])
    assert open_still.rows == []
    closed = kit.run(tumbling, [bought("ann", 1, second=5), clock(20)])
    assert closed.columns("begins", "ends", "amounts") == [(at(0), at(10), [1])]
    assert closed.watermark == at(10)


def test_after_the_end_every_window_is_closed(kit: Kit) -> None:
    result = kit.run(tumbling, [bought("ann", 1, second=5), bought("bob", 2, second=500), END])
    assert result.columns("user", "amounts") == [("ann", [1]), ("bob", [2])]


def test_after_a_quiet_moment_a_record_behind_the_watermark_is_late(kit: Kit) -> None:
    late = bought("ann", 2, second=1)
    result = kit.run(tumbling, [bought("ann", 1, second=60), QUIET, late, END])
    assert result.columns("amounts") == [([1],)]
    assert result.late == 1
    at_once = kit.run(tumbling, [bought("ann", 1, second=60), BATCH, late, END])
    assert at_once.late == 0, "the watermark of a batch holds for the batch after the next"


def test_what_cannot_be_read_is_rejected_with_coordinates_bytes_and_reason(kit: Kit) -> None:
    bad = [
        record(PURCHASES, key=None, value={"user": "ann", "amount": 1}, partition=0),
        record(PURCHASES, key="ann", value=b"\xff\xfe", partition=1),
        record(PURCHASES, key="ann", value=None, partition=1),
        record(PURCHASES, key="ann", value={"user": "ann", "amount": "much"}, partition=1),
        record(PURCHASES, key="ann", value={"user": "ann", "amount": -1}, partition=1, offset=9),
    ]
    result = kit.run(totals, [*bad, bought("bob", 2, second=1)])
    assert [str(reject) for reject in result.rejects] == [
        "purchases[0]@0: null key: user is needed",
        "purchases[1]@0: not UTF-8",
        "purchases[1]@1: empty value",
        "purchases[1]@2: not JSON of the declared shape (user string, amount bigint)",
        "purchases[1]@9: rule amount is positive",
    ]
    assert [(reject.key, reject.value) for reject in result.rejects][:2] == [
        (None, bad[0].value),
        (b"ann", b"\xff\xfe"),
    ]
    assert result.rows == [{"user": "bob", "total": 2}]
    assert kit.run_as_batch(totals, [*bad, bought("bob", 2, second=1)]).rejects == result.rejects


def test_a_key_that_is_not_utf_8_reaches_neither_table_nor_lookup(kit: Kit) -> None:
    torn = record(PURCHASES, key=b"\xff", value={"user": "ann", "amount": 1}, partition=0)
    by_key = replace(
        newest,
        transform=lambda purchases: purchases.select(F.col("key").alias("user"), "amount", "record"),
    )
    for run in (kit.run, kit.run_as_batch):
        result = run(by_key, [torn, bought("bob", 2, second=1)])
        assert [str(reject) for reject in result.rejects] == ["purchases[0]@0: key not UTF-8"]
        assert result.rows == [{"user": "bob", "amount": 2}]
        name = record(NAMES, key=b"\xffb", value={"name": "?!"}, partition=0)
        looked_up = run(greeted(), [name, bought("bob", 2, second=1)])
        assert [str(reject) for reject in looked_up.rejects] == ["names[0]@0: key not UTF-8"]
        assert looked_up.columns("amount", "name") == [(2, "?")]


def test_a_null_finds_no_record_of_a_lookup(kit: Kit) -> None:
    script = [
        record(NAMES, key="None", value={"name": "nobody"}, second=0),
        record(PURCHASES, key="ann", value={"user": None, "amount": 1}, second=1),
    ]
    for run in (kit.run, kit.run_as_batch):
        assert run(greeted(), script).columns("user", "name") == [(None, "?")]


def test_too_many_rejects_stop_the_job_with_the_first_ones_coordinates(kit: Kit) -> None:
    with pytest.raises(RejectLimitExceeded, match=r"totals v1 stopped at purchases\[0\]@0: 30 of 30 records rejected"):
        kit.run(totals, [record(PURCHASES, key="ann", value=b"{", partition=0)] * 30)


def test_a_transform_that_fails_says_so_with_its_line(kit: Kit) -> None:
    def wrong(_: object) -> object:
        raise ZeroDivisionError("no rows")

    failing = replace(totals, transform=lambda purchases: wrong(purchases))  # pyright: ignore[reportArgumentType]
    line = wrong.__code__.co_firstlineno + 1
    with pytest.raises(DeclarationError, match=rf"ZeroDivisionError: no rows, at tests/testing/test_kit.py:{line}\."):
        kit.run(failing, TWO)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "user STRING, total INT"}, "transform column 'total': declared int, came bigint"),
        ({"schema": "user STRING, total BIGINT, at DATE"}, "transform column 'at': declared date, came no such column"),
        ({"schema": "total BIGINT", "key": ()}, "transform column 'user': declared no such column, came string"),
    ],
)
def test_what_weir_check_refuses_the_kit_refuses_too(kit: Kit, change: dict[str, str], says: str) -> None:
    declared = replace(totals, output=replace(totals.output, **change), publish=None)
    for run in (kit.run, kit.run_as_batch):
        with pytest.raises(DeclarationError, match=says):
            run(declared, TWO)


def test_the_kit_refuses_what_is_published_otherwise_than_its_topic_declares(kit: Kit) -> None:
    (publish,) = totals.publishes
    told = replace(publish, topic=replace(publish.topic, value="total INT"))
    with pytest.raises(DeclarationError, match="column 'total' is declared int, and published bigint"):
        kit.run(replace(totals, publish=told), TWO)


def test_every_row_has_the_lookup_of_its_own_time(kit: Kit) -> None:
    script = [
        named("ann", "Ann", second=0),
        bought("ann", 1, second=5),
        bought("bob", 2, second=5),
        named("ann", "Anna", second=7),
        bought("ann", 3, second=6.9),
        bought("ann", 4, second=7),
        BATCH,
        named("ann", None, second=8),
        bought("ann", 5, second=7.5),
        bought("ann", 6, second=9),
    ]
    expected = [(1, "Ann"), (2, "?"), (3, "Ann"), (4, "Anna"), (5, "Anna"), (6, "?")]
    assert kit.run(greeted(), script).columns("amount", "name") == expected
    assert kit.run_as_batch(greeted(), script).columns("amount", "name") == expected


def test_a_row_waits_for_a_lookup_on_its_way_and_no_longer(kit: Kit) -> None:
    script = [bought("ann", 1, second=5), BATCH, named("ann", "Ann", second=4), bought("bob", 2, second=6)]
    assert kit.run(greeted(), script).columns("amount", "name") == [(1, "?"), (2, "?")]
    waiting = kit.run(greeted(wait="2 seconds"), script)
    assert waiting.rows == []
    released = kit.run(greeted(wait="2 seconds"), [*script, clock(7)])
    assert released.columns("amount", "name") == [(1, "Ann")]
    assert kit.run(greeted(wait="2 seconds"), [*script, END]).columns("amount", "name") == [(1, "Ann"), (2, "?")]


@pytest.mark.parametrize("crash", Crash)
def test_rows_that_wait_survive_a_crash(kit: Kit, crash: Crash) -> None:
    script = [bought("ann", 1, second=5), BATCH, named("ann", "Ann", second=4), bought("bob", 2, second=6), crash, END]
    result = kit.run(greeted(wait="2 seconds"), script)
    assert result.columns("amount", "name") == [(1, "Ann"), (2, "?")]


def test_of_several_rows_of_a_key_the_newest_record_wins_in_a_batch(kit: Kit) -> None:
    script = [bought("ann", 1, second=3), bought("ann", 2, second=5), bought("ann", 3, second=4)]
    assert kit.run(newest, script).rows == kit.run_as_batch(newest, script).rows


SEEN = "user STRING, amount BIGINT, at TIMESTAMP, name STRING, named_at TIMESTAMP"
NAMED = [
    named("ann", "Ann", second=1),
    bought("ann", 1, second=0),
    bought("ann", 2, second=2),
    named("ann", "Anna", second=3),
    bought("ann", 3, second=4),
    named("bob", "Bob", second=1),
    named("bob", None, second=5),
    bought("bob", 4, second=6),
    bought("eve", 5, second=7),
]


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        (True, [(2, "Ann", at(1)), (3, "Anna", at(3))]),
        (False, [(1, None, None), (2, "Ann", at(1)), (3, "Anna", at(3)), (4, None, None), (5, None, None)]),
    ],
    ids=["required", "not required"],
)
def test_a_row_can_need_a_lookups_record_and_say_since_when_it_is_so(
    kit: Kit, required: bool, expected: list[object]
) -> None:
    names = Lookup(NAMES, on="user", at="at", takes=("name",), required=required, dated="named_at")
    told = greeted()
    inputs = {**told.inputs, "names": names}
    declared = replace(told, inputs=inputs, output=replace(told.output, schema=SEEN))
    for result in (kit.run(declared, [*NAMED, CRASH_AFTER_WRITE, END]), kit.run_as_batch(declared, NAMED)):
        assert result.columns("amount", "name", "named_at") == expected


def test_null_values_are_rejected_or_passed_over(kit: Kit) -> None:
    script = [bought("ann", 1, second=0), record(PURCHASES, key="ann", value=None, second=1)]
    assert [reject.reason for reject in kit.run(totals, script).rejects] == ["empty value"]
    skipping = replace(totals, inputs={"purchases": Stream(PURCHASES, lateness="10 seconds", nulls="skip")})
    for result in (kit.run(skipping, script), kit.run_as_batch(skipping, script)):
        assert (result.columns("user", "total"), result.rejects) == ([("ann", 1)], [])
