"""What a tree says of its job, asked in a process of its own: this one may have loaded another tree's modules."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platform_core.archived import protocol
from platform_core.errors import DeclarationError
from platform_core.settings import Settings


@dataclass(frozen=True)
class Description:
    declared: dict[str, Any]
    fingerprint: str
    protocol: int
    rows_version: int


def told(code: Path, job: str, settings: Settings) -> Description:
    """Refused when the code does not load."""
    return Description(**asked(code, settings, protocol.module_of(protocol.PROTOCOL, "describe"), job))


def asked(code: Path, settings: Settings, module: str, job: str) -> dict[str, Any]:
    """The JSON that the tree's module prints last."""
    environment = {**settings.child_environment(), "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", module, job]
    ran = subprocess.run(command, env=environment, cwd=code, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
        raise DeclarationError(f"job {job!r}: its code does not load: {last}", remedy=f"See `weir check {job}`.")
    return json.loads(ran.stdout.splitlines()[-1])
