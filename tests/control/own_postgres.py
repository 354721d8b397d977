"""A Postgres of the test's own, to be stopped, frozen, killed and started again."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from platform_core.services import ports, postgres
from platform_core.services.service import start
from platform_core.settings import Settings, load
from tests.processes import signal_each


@dataclass
class OwnPostgres:
    settings: Settings
    child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.child = start(postgres.server(self.settings))

    def stop(self) -> None:
        if self.child is not None:
            self.child.send_signal(signal.SIGINT)
            self.child.wait(20)
        self.child = None

    def signal_all(self, number: signal.Signals) -> None:
        """To the server and all its processes."""
        if self.child is not None and self.child.poll() is None:
            server = psutil.Process(self.child.pid)
            signal_each([server, *server.children(recursive=True)], number)


@contextmanager
def own_postgres(home: Path, **environment: str) -> Generator[OwnPostgres]:
    port = str(ports.free(1)[0])
    server = OwnPostgres(load(environment={"WEIR_HOME": str(home), "WEIR_POSTGRES__PORT": port, **environment}))
    server.start()
    try:
        yield server
    finally:
        server.signal_all(signal.SIGCONT)
        server.stop()
