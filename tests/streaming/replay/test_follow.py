"""From one of the live release's commits to another, with the watermarks that it had."""

from __future__ import annotations

from datetime import UTC, datetime

from platform_core.control.position import Position, TableVersion
from platform_core.control.positions import Committed
from platform_core.streaming.replay.follow import CatchUpTarget, arrived, next_target


def commit(batch: int, watermark_ms: int, **offsets: int) -> Committed:
    parts = {int(name.removeprefix("p")): offset for name, offset in offsets.items()}
    position = Position("j@v1", batch, {"t": parts}, watermark_ms=watermark_ms)
    return Committed(position, batch, datetime(2025, 1, 1, tzinfo=UTC))


def test_the_watermark_of_a_leg_is_that_of_the_first_commit_not_yet_followed() -> None:
    history = [commit(4, 900, p0=40), commit(3, 700, p0=30), commit(2, 500, p0=20)]
    assert next_target({"t": {0: 20}}, history) == CatchUpTarget({"t": {0: 40}}, 700, 900)


def test_a_later_commit_at_the_same_offsets_is_followed_for_its_watermark() -> None:
    history = [commit(3, 900, p0=20), commit(2, 500, p0=20)]
    found = next_target({"t": {0: 20}}, history)
    assert found == CatchUpTarget({"t": {0: 20}}, 900, 900)
    assert found is not None
    assert not arrived({"t": {0: 20}}, 500, found)
    assert arrived({"t": {0: 20}}, 900, found)


def test_a_follower_that_is_ahead_somewhere_waits() -> None:
    assert next_target({"t": {0: 25, 1: 3}}, [commit(2, 500, p0=20, p1=9)]) is None


def test_versions_of_a_table_are_followed_as_offsets_are() -> None:
    def at(batch: int, version: int) -> Committed:
        position = Position("j@v1", batch, {"t": {0: 20}}, watermark_ms=100 * batch, tables={"trades": trades(version)})
        return Committed(position, batch, datetime(2025, 1, 1, tzinfo=UTC))

    def trades(version: int) -> TableVersion:
        return TableVersion("trades@v1", version)

    history = [at(4, 7), at(3, 6), at(2, 5)]
    found = next_target({"t": {0: 20}, "trades": trades(5)}, history)
    assert found == CatchUpTarget({"t": {0: 20}, "trades": trades(7)}, 300, 400)
    assert found is not None
    assert not arrived({"t": {0: 20}, "trades": trades(6)}, 400, found)
    assert arrived({"t": {0: 20}, "trades": trades(7)}, 400, found)
    assert next_target({"t": {0: 20}, "trades": trades(8)}, history) is None
    assert (
        next_target({"t": {0: 20}, "trades": TableVersion("trades@v2", 1)}, history) is None
    )  # of another release's table


def test_nothing_to_follow_is_no_leg() -> None:
    assert next_target({}, []) is None
