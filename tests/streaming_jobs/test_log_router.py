from __future__ import annotations

from typing import Any

from ingest.topics import LOGS, LOGS_HIGH, LOGS_LOW
from platform_core.declare import Topic
from platform_core.testing import BATCH, CRASH_AFTER_PUBLISH, CRASH_AFTER_WRITE, END, Kit, Record, Result, at, record
from streaming_jobs.log_router.job import log_router


def line(level: str | None, message: str, *, service: str = "mail", second: float = 0) -> Record:
    return record(LOGS, key=service, value={"level": level, "service": service, "message": message}, second=second)


def told(result: Result, topic: Topic) -> list[Any]:
    return [(one.key, one.value["level"], one.value["message"]) for one in result.published_to(topic)]


def test_errors_and_worse_go_to_one_topic_and_the_rest_to_the_other(kit: Kit) -> None:
    levels = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "error", "Notice")
    result = kit.run(log_router, [line(level, level.lower()) for level in levels])
    assert told(result, LOGS_HIGH) == [
        ("mail", "ERROR", "error"),
        ("mail", "FATAL", "fatal"),
        ("mail", "ERROR", "error"),
    ]
    assert [level for _, level, _ in told(result, LOGS_LOW)] == ["TRACE", "DEBUG", "INFO", "WARN", "NOTICE"]
    assert len(result.rows) == len(levels)


def test_a_record_holds_the_line_and_its_time(kit: Kit) -> None:
    result = kit.run(log_router, [line("FATAL", "größe", service="stock", second=7)])
    (found,) = result.published_to(LOGS_HIGH)
    assert found.value == {
        "level": "FATAL",
        "service": "stock",
        "message": "größe",
        "logged_at": "2025-03-01T12:00:07.000Z",
    }
    assert result.columns("line_id", "level", "service", "message", "logged_at") == [
        (result.rows[0]["line_id"], "FATAL", "stock", "größe", at(7))
    ]
    assert result.published_to(LOGS_LOW) == []


def test_a_line_is_in_one_topic_once_wherever_the_process_dies_and_in_whatever_order_it_comes(kit: Kit) -> None:
    script = [line("INFO", "a", second=9), line("ERROR", "b", second=3)]
    late = [line("ERROR", "c", second=-90_000), line("INFO", "a", second=9)]
    result = kit.run(log_router, [*script, CRASH_AFTER_WRITE, *late, CRASH_AFTER_PUBLISH, line("INFO", "d"), END])
    assert sorted(message for _, _, message in told(result, LOGS_HIGH)) == ["b", "c"]
    assert sorted(message for _, _, message in told(result, LOGS_LOW)) == ["a", "a", "d"]
    assert result.late == 0
    assert len(result.rows) == 5


def test_what_is_no_log_line_is_rejected(kit: Kit) -> None:
    bad = [line(None, "no level"), line("", "empty level"), record(LOGS, key="mail", value=b"INFO started")]
    result = kit.run(log_router, [*bad, line("INFO", "fine")])
    assert [reject.offset for reject in result.rejects] == [0, 1, 2]
    assert [row["message"] for row in result.rows] == ["fine"]


def test_stream_and_batch_agree(kit: Kit) -> None:
    script = [line("INFO", "a"), BATCH, line("ERROR", "b", second=1), BATCH, line("WARN", "c", second=2)]
    assert kit.run(log_router, [*script, END]).rows == kit.run_as_batch(log_router, script).rows
