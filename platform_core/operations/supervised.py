"""Whoever asks for something hears at once that nobody would do it now."""

from __future__ import annotations

from platform_core.control import services
from platform_core.control.store import ControlStore
from platform_core.errors import ServiceUnavailable


def require(store: ControlStore) -> None:
    """Before a change that would be left half way: nobody would carry it through, or give it up at its deadline."""
    _refuse_silence(store, "Nothing was changed, for nobody would carry it out.")


def told(store: ControlStore) -> None:
    """After wanted states were written, which stay wanted."""
    _refuse_silence(store, "What you asked for is noted, and will be done once it runs.")


def _refuse_silence(store: ControlStore, so: str) -> None:
    found = services.supervision(services.all(store))
    if not found.there:
        raise ServiceUnavailable(
            f"NOTHING SUPERVISES: the supervisor {found.heard}. {so}", remedy="Start it with `weir up`."
        )
