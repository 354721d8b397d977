"""A control store on the session's Postgres; tests keep apart by names of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import ROOT
from tests.conftest import Database

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def migrated(postgres: Database) -> Iterator[ControlStore]:
    store = ControlStore.open(postgres.settings)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def store(migrated: ControlStore) -> ControlStore:
    return migrated


@pytest.fixture
def release() -> ReleaseId:
    """One that no other test has seen."""
    return ReleaseId(f"job_{next(_numbers)}", 1)


@pytest.fixture
def environment(postgres: Database) -> dict[str, str]:
    """For processes that work on the same control store."""
    return {**postgres.settings.child_environment(), "PYTHONPATH": str(ROOT)}
