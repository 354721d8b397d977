"""What has died shows in Dagster within a minute: a driver, the supervisor, the broker; and that it is back, too.

A running daemon and its sensors, the checks as the web page is told them.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from platform_core.control import wanted
from platform_core.names import ReleaseId
from platform_core.orchestrate.keys import live_key
from platform_core.services import dagster, kafka, ports, postgres
from platform_core.settings import load
from tests.stack.running import Platform, a_platform, until

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1200)]
MINUTE = 60.0
JOB = "word_count"
LIVE = ReleaseId(JOB, 1)
HISTORY = """
query ($key: AssetKeyInput!, $check: String!) {
  assetCheckExecutions(assetKey: $key, checkName: $check, limit: 1) { status evaluation { description } }
}
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A job at work, and a Dagster that says so."""
    broker, _, database, page = (str(port) for port in ports.free(5)[:4])
    environment = {
        "WEIR_HOME": str(tmp_path_factory.mktemp("shown") / "home"),
        "WEIR_KAFKA__PORT": broker,
        "WEIR_POSTGRES__PORT": database,
        "WEIR_DAGSTER__PORT": page,
    }
    settings = load(environment=environment)
    with a_platform(settings, own=[postgres.server, kafka.broker]) as running:
        running.freeze(JOB)
        wanted.want(running.store, LIVE, "run", "a test")
        running.supervise()
        running.generate("lines", "--rate", "20")
        for service in dagster.servers(settings):
            running.serve(service)
        running.works(LIVE)
        for check in ("driver_alive", "lag_bounded", "supervised"):
            until(lambda one=check: said(running, one)[0] == "SUCCEEDED", f"{check} holds")
        yield running


def said(platform: Platform, check: str) -> tuple[str, str]:
    """The newest evaluation of a check of the live release: its status, and why."""
    asked = {"query": HISTORY, "variables": {"key": {"path": live_key(JOB).path}, "check": check}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{platform.settings.dagster.port}/graphql",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["assetCheckExecutions"]
    return (found[0]["status"], (found[0]["evaluation"] or {}).get("description", "")) if found else ("NONE", "")


def shows(platform: Platform, check: str, status: str, why: str = "") -> None:
    until(lambda: (now := said(platform, check))[0] == status and why in now[1], f"{check}: {status} {why}", MINUTE)


def test_a_dead_supervisor_shows(platform: Platform) -> None:
    platform.service("supervisor").kill()
    shows(platform, "supervised", "FAILED", "was last heard of")


def test_a_dead_driver_that_nobody_starts_again_shows(platform: Platform) -> None:
    platform.kill_driver(LIVE)
    shows(platform, "driver_alive", "FAILED", "no driver holds its lease")


def test_what_a_supervisor_mends_shows_as_mended(platform: Platform) -> None:
    platform.supervise()
    platform.works(LIVE)
    shows(platform, "supervised", "SUCCEEDED")
    until(lambda: said(platform, "driver_alive")[0] == "SUCCEEDED", "the driver is known to be at work")


def test_a_dead_broker_shows(platform: Platform) -> None:
    platform.service("kafka").kill_all()
    shows(platform, "lag_bounded", "FAILED", "The broker does not answer")
    platform.serve(kafka.broker(platform.settings))
    platform.works(LIVE)
    shows(platform, "lag_bounded", "SUCCEEDED")


def test_a_dead_daemon_begins_again_where_it_was(platform: Platform) -> None:
    """Fault 23: the streams go on without it."""
    platform.service("dagster-daemon").kill_all()
    platform.works(LIVE)
    platform.serve(dagster.daemon(platform.settings))
    platform.service("supervisor").kill()
    shows(platform, "supervised", "FAILED", "was last heard of")
