"""How properties are tested here: few examples in the ordinary tier, thousands in the long one, no failure lost.

- A failing example is reported as it was found: it is not shrunk, which takes minutes, under a tracer, and once ran
  into the time limit, so that nobody learned of the failure. To shrink one, by hand:

      pytest THE_TEST --hypothesis-profile=shrink

- It is written to .hypothesis/examples in the moment in which it fails, and comes first in the next run; `make clean`
  leaves it. The report ends with a blob that repeats it on another machine.
- No time limit inside: neither for one example, nor for the test. The tier's budget and .ci/run have one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from platform_core.settings import ROOT

Test = TypeVar("Test", bound=Callable[..., Any])
KEPT = ROOT / ".hypothesis" / "examples"
_AS_FOUND = (Phase.explicit, Phase.reuse, Phase.generate)
_SHRUNK = (*_AS_FOUND, Phase.shrink)


def pytest_configure(config: pytest.Config) -> None:
    """After hypothesis' own, which takes another profile where it runs in a CI: that one keeps nothing."""
    settings.load_profile(config.getoption("--hypothesis-profile") or "weir")


def _profile(name: str, phases: tuple[Phase, ...]) -> None:
    settings.register_profile(
        name,
        phases=phases,
        database=DirectoryBasedExampleDatabase(KEPT),
        print_blob=True,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.normal,
        suppress_health_check=[HealthCheck.too_slow],  # on a busy machine every example is
    )


_profile("weir", _AS_FOUND)
_profile("shrink", _SHRUNK)


def of(examples: int, steps: int = 50) -> settings:
    """The house's settings, with so many examples, of so many steps each where it is a state machine."""
    return settings(max_examples=examples, stateful_step_count=steps)


def tiers(few: int, many: int) -> Callable[[Test], Test]:
    """`examples` of a test: few in the ordinary tier, many in the long one."""

    def marked(test: Test) -> Test:
        numbers = pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.long)])
        return pytest.mark.timeout(0)(numbers(test))

    return marked
