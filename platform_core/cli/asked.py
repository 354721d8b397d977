"""What every command may be asked: which profile, which home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from platform_core.control.store import ControlStore
    from platform_core.settings import Settings


@dataclass(frozen=True)
class Asked:
    profile: str | None = None
    home: Path | None = None


def settings_of(context: typer.Context) -> Settings:
    from platform_core import settings

    asked = context.find_object(Asked) or Asked()
    loaded = settings.load(asked.profile)
    return loaded if asked.home is None else loaded.model_copy(update={"home": asked.home.expanduser().resolve()})


def store_of(settings: Settings) -> ControlStore:
    from platform_core.control.store import ControlStore

    return ControlStore.open(settings)


def who() -> str:
    """For the audit."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "somebody"


def job_names_here(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from platform_core.declare.discover import job_names
    from platform_core.settings import ROOT

    return [name for name in job_names(ROOT) if name.startswith(incomplete)]
