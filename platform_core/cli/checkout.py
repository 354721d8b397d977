"""Which checkout a command means: the one that it is installed from, or the one that WEIR_ROOT names.

Read here and not with the settings: it decides which code reads those.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from platform_core.errors import SetupError

_LAUNCHER = Path(".venv", "bin", "weir")


def enter(asked: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Becomes the `weir` of the checkout in WEIR_ROOT, where that is another one; returns where it is this one."""
    named = (os.environ if environment is None else environment).get("WEIR_ROOT")
    if not named:
        return
    from platform_core.settings import ROOT

    if Path(named).expanduser().resolve() == ROOT:
        return
    launcher = Path(named).expanduser().resolve() / _LAUNCHER
    if not launcher.is_file():
        raise SetupError(
            f"WEIR_ROOT={named}: there is no {launcher}.", remedy="Name a checkout of weir, and run `make setup` in it."
        )
    os.execv(launcher, [str(launcher), *asked])


def notes(folder: Path, home: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """What somebody who stands in `folder` may have meant instead; nothing where the environment says what is meant."""
    from platform_core.settings import ROOT

    if {"WEIR_ROOT", "WEIR_HOME"} & (os.environ if environment is None else environment).keys():
        return []
    other, found = around(folder), list[str]()
    if other is not None and other != ROOT:
        found.append(f"this is weir of {ROOT}; for the checkout that you are in: WEIR_ROOT={other}")
    here = folder / ".weir"
    if here.resolve() != home and here != (other or ROOT) / ".weir" and (here / "postgres.password").is_file():
        found.append(f"this is the platform in {home}; for the one in this folder: WEIR_HOME={here}")
    return found


def around(folder: Path) -> Path | None:
    """The checkout of weir that the folder is in."""
    places = (folder, *folder.parents)
    return next((one for one in places if (one / "platform_core" / "settings.py").is_file() and _profiles(one)), None)


def _profiles(root: Path) -> bool:
    return (root / "infra" / "profiles").is_dir()
