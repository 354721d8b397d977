"""`python -m platform_core.supervise`: runs until SIGTERM, then stops its drivers after their batches.

Killed with SIGKILL it leaves them running; the next supervisor adopts them.
"""

from __future__ import annotations

import logging
import signal
import sys

from platform_core import settings as configuration
from platform_core import telemetry
from platform_core.control.store import ControlStore
from platform_core.errors import WeirError
from platform_core.supervise.supervisor import Supervisor

logger = logging.getLogger("platform_core.supervise")


def main() -> int:
    telemetry.configure()
    try:
        settings = configuration.load()
        supervise(Supervisor(settings, ControlStore.open(settings)))
    except WeirError as error:
        telemetry.event(logger, "supervisor ended", level=logging.ERROR, error=error)
        return error.exit_code
    return 0


def supervise(supervisor: Supervisor) -> None:
    def stop(_number: int, _frame: object) -> None:
        supervisor.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
