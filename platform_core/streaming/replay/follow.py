"""After the live release: from one of its commits to another, several at a time, with the watermarks that it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from platform_core.control.position import Places, same_place
from platform_core.control.positions import Committed
from platform_core.streaming.checkpoint.planned_batches import reaches


@dataclass(frozen=True)
class CatchUpTarget:
    """The live release's commits between where a follower stands and where it shall stand."""

    places: Places
    first_watermark_ms: int  # of the first commit: with a later one, records would be late here that were not there
    watermark_ms: int  # of the last: what it had emitted there by time is due here too


def next_target(at: Places, newest_first: Sequence[Committed]) -> CatchUpTarget | None:
    """To the newest of the live release's commits; None while it is not ahead, or not ahead everywhere."""
    if not newest_first:
        return None
    goal = newest_first[0].position
    if not reaches(goal.places, at):
        return None
    ahead = [one.position for one in newest_first if not reaches(at, one.position.places)]
    first = ahead[-1] if ahead else goal
    return CatchUpTarget(goal.places, first.watermark_ms, goal.watermark_ms)


def arrived(at: Places, watermark_ms: int, goal: CatchUpTarget) -> bool:
    return same_place(at, goal.places) and watermark_ms >= goal.watermark_ms
