"""`python -m platform_core.archived.describe JOB`: what the archive declares of its job, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from platform_core.archived.protocol import PROTOCOL
from platform_core.archived.rows import ROWS_VERSION
from platform_core.declare.discover import load_job
from platform_core.release.declared import declared, fingerprint


def main(name: str) -> None:
    root = Path(__file__).resolve().parents[2]
    values = declared(load_job(name, root))
    versions = {"protocol": PROTOCOL, "rows_version": ROWS_VERSION}
    print(json.dumps({"declared": values, "fingerprint": fingerprint(values, root), **versions}))


if __name__ == "__main__":
    main(sys.argv[1])
