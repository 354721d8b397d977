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

Once = Callable[[StreamingJob, str], Result]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that takes `job` runs for each job that stands in the tree.

    One that takes `crash`, too, has each place of a crash with each job, of which `make test` runs one place a job.
    """
    if "crash" in metafunc.fixturenames:
        metafunc.parametrize(("job", "crash"), [*_crashes()], scope="session")
    elif "job" in metafunc.fixturenames:
        metafunc.parametrize("job", JOBS.values(), ids=JOBS.keys(), scope="session")


def _crashes() -> Iterator[Any]:
    places = list(Crash)
    for number, (name, job) in enumerate(JOBS.items()):
        for place in places:
            marks = () if place is places[number % len(places)] else (pytest.mark.long,)
            yield pytest.param(job, place, id=f"{name}-{place.name}", marks=marks)


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
