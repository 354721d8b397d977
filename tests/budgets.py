"""The plugin that gives each test its tier's marker, and fails a whole tier's run that took more than its budget."""

from __future__ import annotations

from collections import defaultdict

import psutil
import pytest

from tests.tiers import QUICK, SERVICES, Tier, marker_of, outgrown, whole

_NARROWS = ("keyword", "deselect", "lf", "stepwise")
_LISTENS = 1.0  # seconds
_SHOWN = 20


class Budget:
    """What the tests of one tier take, and what else the machine does meanwhile."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self.took: dict[str, float] = defaultdict(float)
        self.busy = 0.0

    def pytest_sessionstart(self) -> None:
        self.busy = _busy()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        took = sorted(self.took.items(), key=lambda one: one[1], reverse=True)[:_SHOWN]
        terminalreporter.section(f"{sum(self.took.values()):.0f} s of {self.tier.seconds:.0f} s; the slowest")
        for name, seconds in took:
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.OK:
            return
        why = outgrown(self.tier, self.took, max(self.busy, _busy()))
        if why:
            session.config.hook.pytest_runtest_logreport(report=_failed(self.tier, why))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _busy() -> float:
    """The share of the machine that is taken while no test runs."""
    return psutil.cpu_percent(_LISTENS) / 100


def _failed(tier: Tier, why: str) -> pytest.TestReport:
    place = ("tests/tiers.py", None, f"budget of {tier.command}")
    return pytest.TestReport(f"{place[0]}::{place[2]}", place, {}, "failed", why, "call")


class NoServices:
    """A test of the quick tier that asks for a service fails, also when it asks in a roundabout way."""

    def __init__(self) -> None:
        self.item: pytest.Item | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.item = item

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> None:
        if self.item and self.item.get_closest_marker(QUICK) and fixturedef.argname in SERVICES:
            pytest.fail(f"{self.item.nodeid} is of the quick tier and asks for {fixturedef.argname}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NoServices())
    narrowed = [name for name in _NARROWS if config.getoption(name, None)]
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        narrowed.append("paths")
    tier = whole(config.getoption("markexpr") or "", narrowed)
    if tier and not hasattr(config, "workerinput") and not config.getoption("collectonly"):
        config.pluginmanager.register(Budget(tier))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before pytest selects by markers."""
    for item in items:
        path = item.path.relative_to(item.config.rootpath).as_posix()
        marks = {mark.name for mark in item.iter_markers()}
        fixtures: list[str] = getattr(item, "fixturenames", [])
        item.add_marker(marker_of(path, marks, fixtures))
