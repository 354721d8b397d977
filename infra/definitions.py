"""The one Dagster code location. Importing it reads nothing; Dagster calls it when it loads the location."""

from __future__ import annotations

import dagster as dg

from platform_core.orchestrate.location import location
from platform_core.orchestrate.platform import Platform
from platform_core.settings import load


@dg.definitions
def weir() -> dg.Definitions:
    return location(Platform.declared(load()))
