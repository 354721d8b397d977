"""`python -m platform_core.archived.jars LOG`: the jars of the archive's lock, in this interpreter's environment."""

from __future__ import annotations

from platform_core.services.jars import main

if __name__ == "__main__":
    raise SystemExit(main())
