"""What every command may be asked: which profile, which home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from platform_core.cli.checkout import notes
from platform_core.cli.output import say

if TYPE_CHECKING:
    from platform_core.control.store import ControlStore
    from platform_core.operations import Caller
    from platform_core.settings import Settings


@dataclass(frozen=True)
class CommandContext:
    profile: str | None = None
    home: Path | None = None


def settings_of(context: typer.Context) -> Settings:
    from platform_core import settings

    asked = context.find_object(CommandContext) or CommandContext()
    loaded = settings.load(asked.profile)
    if asked.home is not None:
        return loaded.model_copy(update={"home": asked.home.expanduser().resolve()})
    for note in notes(Path.cwd(), loaded.home):
        say(f"note: {note}")
    return loaded


def store_of(settings: Settings) -> ControlStore:
    from platform_core.control.store import ControlStore

    return ControlStore.open(settings)


def caller_of(context: typer.Context, reason: str = "") -> Caller:
    from platform_core.operations import Caller

    settings = settings_of(context)
    return Caller(settings, store_of(settings), who(), reason)


def who() -> str:
    """For the audit."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "somebody"


# For the shell's completion: of files alone, so that a tab key waits for no service.


def job_names_here(incomplete: str) -> list[str]:
    """Jobs of the tree; with an @, a job's releases."""
    if "@" in incomplete:
        return releases_here(incomplete)
    from platform_core.declare.discover import job_names
    from platform_core.settings import ROOT

    return [name for name in job_names(ROOT) if name.startswith(incomplete)]


def releases_here(incomplete: str) -> list[str]:
    """Those that have an archive."""
    from platform_core import settings

    folder = settings.load().storage.archives
    found = (f"{path.parent.name}@{path.name}" for path in folder.glob("*/v*") if path.name[1:].isdigit())
    return sorted(name for name in found if name.startswith(incomplete))


def tables_here(incomplete: str) -> list[str]:
    """Those that jobs and daily tables of the tree declare, as their code spells them."""
    import re

    from platform_core.settings import ROOT

    files = [*ROOT.glob("streaming_jobs/*/job.py"), *ROOT.glob("analytics/*/table.py")]
    declared = re.compile(r"""\b(?:Table\(\s*name=|raw_table\()["'](\w+)["']""")
    found = {name for file in files for name in declared.findall(file.read_text())}
    return sorted(name for name in found if name.startswith(incomplete))


def logs_here(incomplete: str) -> list[str]:
    """Jobs, and services that have a log."""
    from platform_core import settings

    there = [path.stem for path in settings.load().storage.logs.glob("*.log") if not path.stem.startswith("driver-")]
    return sorted({*job_names_here(incomplete), *(name for name in there if name.startswith(incomplete))})


def profiles_here(incomplete: str) -> list[str]:
    from platform_core.settings import ROOT

    names = sorted(path.stem for path in (ROOT / "infra" / "profiles").glob("*.toml"))
    return [name for name in names if name.startswith(incomplete)]
