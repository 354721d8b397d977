"""`python -m platform_core.archived.trial JOB FOLDER`: the job's transform over a range of offsets, as a batch."""

from __future__ import annotations

import sys
from pathlib import Path

from platform_core.release.plan.batch import main

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
