"""Signals to several processes of which some may end meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import suppress

import psutil


def signal_each(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Some are gone by then: a helper of the JVM's, or what has just lost its parent."""
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)
