"""Retention removed what a release had not read: it stops and says which; it goes on when it is told to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from platform_core.control import gaps, wanted
from platform_core.control.gaps import Gap
from platform_core.names import ReleaseId
from tests.conftest import Broker
from tests.faults.words import now_ms, refused, trade
from tests.stack.running import Platform, Running, a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(900)]
PREFIX = "retention"
TRADES = f"{PREFIX}-stocks"


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers) as running:
        yield running


def reads(platform: Platform, release: ReleaseId, driver: Running, offset: int) -> None:
    def there() -> bool:
        found = platform.position(release)
        return found is not None and found.offsets[TRADES][0] == offset

    until(there, f"it has read to {offset}", about=driver.log)


def test_a_gap_stops_a_release_until_somebody_accepts_it(platform: Platform, broker: Broker) -> None:
    (release,) = platform.freeze("stock_stats")
    broker.produce(TRADES, *[(b"MMM", trade())] * 100, at=now_ms())
    driver = platform.drive(release)
    reads(platform, release, driver, 100)
    driver.ask_to_end()
    assert driver.exit_code() == 0
    broker.produce(TRADES, *[(b"MMM", trade())] * 100, at=now_ms())
    broker.admin.delete_records([TopicPartition(TRADES, 0, 150)])[TopicPartition(TRADES, 0)].result(20)

    lost = f"Retention has removed 50 records that were not read yet: {TRADES}[0] 100..149."
    why = refused(platform, release)
    assert lost in why
    assert f"`weir start {release} --accept-gap`" in why
    assert [(one.gap, one.accepted_by) for one in gaps.of(platform.store, release)] == [(Gap(TRADES, 0, 100, 149), "")]

    told = subprocess.run(
        [sys.executable, "-m", "platform_core.cli", "start", str(release), "--accept-gap"],
        cwd=platform.settings.root,
        env={**platform.settings.child_environment(), "PYTHONPATH": str(platform.settings.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"goes on without 50 records, {TRADES}[0] 100..149" in told.stderr, told
    asked = wanted.of(platform.store, release)
    assert asked is not None
    assert asked.state == "run"
    going_on = platform.drive(release)
    reads(platform, release, going_on, 200)
    going_on.ask_to_end()
    assert going_on.exit_code() == 0
    assert sum(one["records"] for one in going_on.events("batch committed")) == 50
