"""A Dagster of the session's own platform, and a browser to look at it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.services import dagster, process
from platform_core.services.service import Service, start
from platform_core.settings import Settings
from tests.browser.browser import Page, browser, installed
from tests.conftest import Broker, Database

PATIENCE = 300.0  # a code server is ready in 10 s, and in minutes beside a busy test run


@pytest.fixture(scope="session")
def site(broker: Broker, postgres: Database) -> Generator[Settings]:
    """The web page, the daemon and the code server, as `weir up` starts them."""
    settings = broker.settings
    assert postgres.settings == settings
    with ExitStack() as stack:
        store = ControlStore.open(settings)
        stack.callback(store.close)
        store.migrate()
        for service in dagster.servers(settings):
            stack.enter_context(running(replace(service, ready_seconds=PATIENCE)))
        yield settings


@contextmanager
def running(service: Service) -> Generator[None]:
    child = start(service)
    try:
        yield
    finally:
        process.stop(Owner.of(child.pid), service.stop_with, service.stop_seconds, child.poll)


@pytest.fixture
def page(site: Settings, tmp_path: Path) -> Generator[Page]:
    if installed() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with browser(tmp_path / "profile") as opened:
        opened.root = f"http://127.0.0.1:{site.dagster.port}"
        yield opened
