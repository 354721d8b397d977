"""What a cutover is refused for, and that it is all told at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_core.cutover.gates import GateComparison, GateFacts, refusals
from platform_core.names import ReleaseId

V1, V2 = ReleaseId("stock_stats", 1), ReleaseId("stock_stats", 2)
READY = GateFacts("stock_stats", V1, V2, "following", True, GateComparison(True, (), 60.0), behind_seconds=12.0)


def told(**changes: object) -> list[str]:
    return [one.what for one in refusals(replace(READY, **changes))]  # type: ignore[arg-type]


def test_a_candidate_that_follows_closely_and_was_compared_goes() -> None:
    assert told() == []
    assert told(state="standby", behind_seconds=0.0) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"state": "replaying"}, "stock_stats@v2 is replaying"),
        ({"state": "failed"}, "stock_stats@v2 is failed"),
        ({"runs": False}, "stock_stats@v2 has no running driver"),
        ({"behind_seconds": None}, "stock_stats@v2 stands at no recent position of stock_stats@v1"),
        ({"behind_seconds": 61.0}, "stock_stats@v2 is 61 s behind stock_stats@v1, more than one step (60 s)"),
        (
            {"clock_behind_ms": 2500},
            "stock_stats@v2: at the same offsets its clock is 2.5 s behind that of stock_stats@v1; "
            "late records would be taken twice over",
        ),
        ({"compared": None}, "stock_stats@v2 was never compared with stock_stats@v1"),
        (
            {"compared": GateComparison(False, ("3 keys changed in avg_price", "1 key is missing"), 5.0)},
            "stock_stats@v2 differs from stock_stats@v1: 3 keys changed in avg_price; 1 key is missing",
        ),
        (
            {"compared": GateComparison(True, (), 1200.0)},
            "the verdict on stock_stats@v2 is 20 minutes old, more than 15",
        ),
        ({"failing_checks": ("no_nulls",)}, "stock_stats@v2 fails its check no_nulls"),
    ],
)
def test_each_gate_says_what_is_wrong(changes: dict[str, object], what: str) -> None:
    assert told(**changes) == [what]


def test_everything_is_told_at_once() -> None:
    assert len(told(runs=False, behind_seconds=90.0, compared=None, failing_checks=("no_nulls",))) == 4


def test_each_refusal_says_what_to_do() -> None:
    found = refusals(replace(READY, state="replaying", behind_seconds=None, compared=None))
    assert all(one.remedy.endswith(".") for one in found)
