"""weir status --watch on a terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pytest

from platform_core.control import releases
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import ROOT
from tests.cli.conftest import Weir

CTRL_C = b"\x03"


@pytest.mark.stack
def test_a_live_table_on_a_terminal_until_ctrl_c(weir: Weir, store: ControlStore) -> None:
    release = ReleaseId("word_count", 1)
    releases.create(store, release, archive_sha256="", fingerprint="", manifest={}, topics={}, by="a test")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        environment = {**weir.environment, "COLUMNS": "140", "LINES": "30", "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "platform_core.cli", "status", "--watch"], environment)
    shown = _read_until(terminal, b"not started (frozen)", seconds=60)
    os.write(terminal, CTRL_C)
    _read_until(terminal, None, seconds=60)
    assert b"word_count" in shown
    assert b"NOTHING SUPERVISES" in shown
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130


def _read_until(terminal: int, text: bytes | None, seconds: float) -> bytes:
    """What was written, until `text` is in it and the screen is whole; None: until nothing writes any more."""
    seen, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            if text is not None and text in seen:
                break
            continue
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # the other side has ended
            break
        if text is not None and text in seen and b"NOTHING" in seen:
            break
    return seen
