"""Calls into libraries that may never return, however long they were told to take."""

from __future__ import annotations

import threading
from collections.abc import Callable


def call_with_timeout(seconds: float, what: str, call: Callable[[], object]) -> None:
    """TimeoutError when it has not returned by then; its thread is left behind, and keeps no process alive."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds + 1)
    if thread.is_alive():
        raise TimeoutError(f"{what} took more than {seconds:.0f} s")
    if raised:
        raise raised[0]
