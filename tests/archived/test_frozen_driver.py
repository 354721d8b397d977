"""The driver of 186ad77 runs a live release on today's control store, entered as the supervisor would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from platform_core.control import drivers
from platform_core.control.position import records_between
from tests.archived.frozen import PREFIX, RELEASE, made_live
from tests.conftest import Broker
from tests.stack.running import a_home, until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]
RECORDS = 50


def test_it_reads_all_tells_where_it_stands_and_ends_as_asked(broker: Broker, tmp_path: Path) -> None:
    value = json.dumps({"type": "ASK", "ticker": "MMM", "price": "5", "size": 1}).encode()
    with a_home(tmp_path, PREFIX, broker.servers) as running:
        made_live(running.settings, running.store, "a test")
        driver = running.drive(RELEASE)
        broker.produce(f"{PREFIX}-stocks", *[(b"MMM", value)] * RECORDS)

        def read() -> int:
            position = running.position(RELEASE)
            return 0 if position is None else records_between({}, position.offsets)

        until(lambda: read() >= RECORDS, "it commits all", about=driver.log)
        told = drivers.get(running.store, RELEASE)
        assert told is not None
        assert (told.state, told.reason) == ("running", "")
        assert driver.end() == 0
        ended = drivers.get(running.store, RELEASE)
        assert ended is not None
        assert ended.state == "stopped"
