from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_jobs
from platform_core.settings import ROOT
from platform_core.testing import Crash, Kit, Result
from tests.contracts.inputs import script_for

JOBS = load_jobs(ROOT)
MAIN = ("stock_stats", "clickstream", "word_count", "stocks_raw", "log_router")

Once = Callable[[StreamingJob, str], Result]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that takes `job` runs for each job that stands in the tree.

    One that takes `crash`, too, has each place of a crash with each main job; `make test` runs one place a job.
    Where a crash hits is the platform's business; each other example has a crash among its own cases.
    """
    if metafunc.definition.get_closest_marker("again"):
        metafunc.parametrize("job", [_again(job) for job in JOBS.values()], ids=JOBS.keys(), scope="session")
    elif "crash" in metafunc.fixturenames:
        metafunc.parametrize(("job", "crash"), [*_crashes()], scope="session")
    elif "job" in metafunc.fixturenames:
        metafunc.parametrize("job", JOBS.values(), ids=JOBS.keys(), scope="session")


def _crashes() -> Iterator[Any]:
    places = list(Crash)
    for number, name in enumerate(MAIN):
        for place in places:
            marks = () if place is places[number % len(places)] else (pytest.mark.long,)
            yield pytest.param(JOBS[name], place, id=f"{name}-{place.name}", marks=marks)


def _again(job: StreamingJob) -> Any:
    return pytest.param(job, marks=() if job.name in MAIN else (pytest.mark.long,))


@pytest.fixture(scope="session")
def kit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return Kit(lambda: request.getfixturevalue("spark"), tmp_path_factory.mktemp("contracts"))


@pytest.fixture(scope="session")
def once(kit: Kit) -> Once:
    """A job's outcome over its own input, streamed or as a batch, computed once for all tests."""

    @cache
    def of(name: str, way: str) -> Result:
        job = JOBS[name]
        return (kit.run if way == "stream" else kit.run_as_batch)(job, script_for(job))

    return lambda job, way: of(job.name, way)
