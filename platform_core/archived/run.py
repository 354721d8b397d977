"""`python -m platform_core.archived.run stock_stats@v1`: a release's driver, in the foreground."""

from __future__ import annotations

import logging
import os
import sys

from platform_core.streaming.driver.process import logger, main

if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except Exception:
        logger.exception("driver broke")
        code = 1
    logging.shutdown()
    # everything is given back by now; DuckDB prints pages about its bindings when the interpreter takes itself apart
    os._exit(code)
