"""What the real driver and the supervisor agree on: who it is, for which generation, and what its end means."""

from __future__ import annotations

import subprocess
import sys

import pytest

from platform_core.control import drivers, releases, wanted
from platform_core.names import ReleaseId
from platform_core.settings import ROOT
from tests.supervise.conftest import Stage

pytestmark = pytest.mark.stack
WORDS = ReleaseId("word_count", 1)


def test_a_driver_whose_broker_is_away_says_that_it_waits_and_is_worth_another_try(stage: Stage) -> None:
    releases.create(
        stage.store, WORDS, archive_sha256="", fingerprint="", manifest={}, topics={"wordcount-input": "id"}, by="ada"
    )
    wanted.want(stage.store, WORDS, "run", "ada")
    wanted.restart(stage.store, WORDS, "ada")
    drivers.report(stage.store, WORDS, state="starting", generation=1)  # as a row that an older driver left
    nowhere = {"WEIR_KAFKA__BOOTSTRAP": "127.0.0.1:1", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "platform_core.archived.run", str(WORDS)],
        env={**stage.settings.child_environment(), **nowhere},
        cwd=stage.settings.home,
        timeout=120,
    )
    driver = stage.driver(WORDS)
    assert ended.returncode == 75
    assert (driver.state, driver.generation, driver.permanent) == ("waiting", 2, False)
    assert "127.0.0.1:1" in driver.reason
