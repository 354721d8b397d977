"""Whoever asks for something hears at once that nobody would do it now."""

from __future__ import annotations

from platform_core.control import services
from platform_core.errors import ServiceUnavailable
from platform_core.operations import Caller


def require(caller: Caller) -> None:
    """Before a change that would be left half way: nobody would carry it through, or give it up at its deadline."""
    _refuse_silence(caller, "Nothing was changed, for nobody would carry it out.")


def told(caller: Caller) -> None:
    """After wanted states were written, which stay wanted."""
    _refuse_silence(caller, "What you asked for is noted, and will be done once it runs.")


def _refuse_silence(caller: Caller, so: str) -> None:
    found = services.supervision(services.all(caller.store))
    if not found.there:
        raise ServiceUnavailable(
            f"NOTHING SUPERVISES: the supervisor {found.heard}. {so}", remedy="Start it with `weir up`."
        )
