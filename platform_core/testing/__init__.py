"""What a job's author tests with: a job over a list of records, as a stream or as a batch, without a broker.

    def test_a_bid_never_moves_the_minimum(kit: Kit) -> None:
        result = kit.run(stock_stats, [ask("MMM", "10", second=4), CRASH, bid("MMM", "1", second=4)])
        assert {row["min_price"] for row in result.rows} == {Decimal("10")}

`infra/runbooks/testing-a-job.md` is the page on it.
"""

from platform_core.testing.kit import Kit
from platform_core.testing.result import Published, Refused, Result
from platform_core.testing.script import (
    BATCH,
    CRASH,
    CRASH_AFTER_PUBLISH,
    CRASH_AFTER_REJECTS,
    CRASH_AFTER_WRITE,
    END,
    QUIET,
    START,
    Clock,
    Crash,
    Mark,
    Record,
    Script,
    Step,
    at,
    clock,
    record,
)

__all__ = [
    "BATCH",
    "CRASH",
    "CRASH_AFTER_PUBLISH",
    "CRASH_AFTER_REJECTS",
    "CRASH_AFTER_WRITE",
    "END",
    "QUIET",
    "START",
    "Clock",
    "Crash",
    "Kit",
    "Mark",
    "Published",
    "Record",
    "Refused",
    "Result",
    "Script",
    "Step",
    "at",
    "clock",
    "record",
]
