"""`python -m platform_core.archived.explain REQUEST`: which differing rows late records account for."""

from __future__ import annotations

import sys

from platform_core.compare.late import main

if __name__ == "__main__":
    main(sys.argv[1])
