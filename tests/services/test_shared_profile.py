"""A profile whose broker and Postgres were started by somebody else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from platform_core.errors import ServiceUnavailable
from platform_core.services import doctor, ports, state
from platform_core.services.down import down
from platform_core.services.roster import external, managed
from platform_core.services.up import up
from platform_core.settings import Settings, load
from tests.conftest import Broker, Database

PROFILE = """
[kafka]
managed = false
bootstrap = "{broker}"
[postgres]
managed = false
port = {port}
database = "shared"
password_file = "{password}"
[dagster]
managed = false
"""


def shared(home: Path, broker: str, settings: Settings) -> Settings:
    """Its database is another than the tests': a supervisor ends drivers that other tests only told of."""
    home.mkdir(parents=True, exist_ok=True)
    words = {"port": settings.postgres.port, "password": settings.home / "postgres.password"}
    (home / "shared.toml").write_text(PROFILE.format(broker=broker, **words))
    return load(str(home / "shared.toml"), {"WEIR_HOME": str(home)})


def quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.mark.stack
def test_none_of_the_services_that_run_elsewhere_is_started(broker: Broker, postgres: Database, tmp_path: Path) -> None:
    settings = shared(tmp_path / "home", broker.servers, postgres.settings)
    try:
        up(settings, quiet())
        found = {one.name: one.phase for one in state.now(settings.home)}
        assert found == {"supervisor": "ready", "postgres": "external", "kafka": "external"}
        assert [str(finding) for finding in doctor.examine(settings) if not finding.ok] == []
    finally:
        down(settings, quiet())
    assert broker.admin.list_topics(timeout=5).brokers, "down stopped a broker that is not its own"


@pytest.mark.stack
def test_a_broker_that_should_be_elsewhere_and_is_not_is_named(postgres: Database, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{ports.free(1)[0]}"
    settings = shared(tmp_path / "home", nobody, postgres.settings)
    with pytest.raises(ServiceUnavailable, match=rf"kafka at {nobody} does not answer; profile .*shared\.toml' says"):
        up(settings, quiet())
    assert state.now(settings.home) == ()


def test_the_example_profile_loads_and_starts_no_server(tmp_path: Path) -> None:
    settings = load("shared", {"WEIR_HOME": str(tmp_path)})
    assert external(settings) == ["postgres", "kafka"]
    assert {one.name for one in managed(settings)} == {
        "supervisor",
        "dagster-code",
        "dagster-runs",
        "dagster-web",
        "dagster-daemon",
    }
