"""Fixtures for pytest. In a conftest.py: `from platform_core.testing.plugin import kit, spark`.

The session is one for the whole test process, made when the first test needs it. A project that has a session
fixture of its own, named `spark`, imports `kit` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from platform_core.settings import load
from platform_core.testing.kit import Kit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from platform_core.streaming.driver.session import session

    settings = load(environment={"WEIR_HOME": str(tmp_path_factory.mktemp("weir"))})
    running = session(settings, "tests")
    yield running
    running.stop()


@pytest.fixture
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Kit:
    return Kit(lambda: request.getfixturevalue("spark"), tmp_path)
