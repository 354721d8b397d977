from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from platform_core.archived.protocol import PROTOCOL
from platform_core.release import archive
from platform_core.settings import Settings, load
from tests.archived.frozen import PREFIX, code_of_then
from tests.stack.running import tree_of_its_own


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home that no service runs for."""
    return load(environment={"WEIR_HOME": str(tmp_path_factory.mktemp("archived"))})


@pytest.fixture(scope="module")
def frozen_code(settings: Settings) -> Path:
    """The code of the archive that was frozen at 186ad77."""
    return code_of_then(settings)


@pytest.fixture(scope="module")
def fresh_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an archive that is frozen today holds, with the same topics as the other."""
    return tree_of_its_own(tmp_path_factory.mktemp("fresh") / "code", PREFIX)


@dataclass(frozen=True)
class Frozen:
    """The code of an archive, and how it is entered."""

    protocol: int
    code: Path
    environment: Mapping[str, str]
    home: Path


@pytest.fixture(scope="module", params=[0, PROTOCOL], ids=["of 186ad77", "of today"])
def frozen(request: pytest.FixtureRequest, settings: Settings, frozen_code: Path, fresh_code: Path) -> Frozen:
    code = frozen_code if request.param == 0 else fresh_code
    return Frozen(request.param, code, archive.environment_for(settings, code, Path(sys.executable)), settings.home)
