"""Each verb once: what it checks, resolves and waits for. The command line and Dagster's jobs parse, call and show."""

from __future__ import annotations

from dataclasses import dataclass

from platform_core.control.store import ControlStore
from platform_core.settings import Settings


@dataclass(frozen=True)
class Caller:
    """Who asks something of which platform, and why: both stand in the audit."""

    settings: Settings
    store: ControlStore
    by: str
    reason: str = ""
