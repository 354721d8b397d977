"""The code server loads the location anew by itself when the tree has changed: a new job needs no click."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from hashlib import sha256

import dagster as dg

from platform_core.errors import ServiceUnavailable
from platform_core.orchestrate import first_days
from platform_core.orchestrate.forker import changed_at
from platform_core.settings import Settings

PACKAGES = ("platform_core", "ingest", "streaming_jobs", "analytics", "quality", "infra")
LOCATION = "weir"
_SECONDS = 120.0
_RELOAD = "mutation { reloadRepositoryLocation(repositoryLocationName: %s) { __typename } }"
_TRY = "from infra.definitions import weir; weir().get_repository_def()"


def tree_changed(settings: Settings) -> dg.SensorDefinition:
    """Made when the location is loaded, and so knows which tree that was."""
    loaded = tree_of(settings)

    @dg.sensor(
        name="tree_changed",
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Has the location loaded anew when a source of the tree has changed, and loads.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        now = tree_of(settings)
        if now == loaded:
            return _told("the tree is as it was loaded", "")
        cursor, refused = context.cursor, f"refused {now}"
        if cursor == refused:
            return _told("the tree still does not load; see the tick before", refused)
        if cursor != now:
            return _told("the tree has changed; it is loaded when it rests", now)
        trouble = trouble_of(settings)
        if trouble:
            return _told(f"the tree does not load, the page shows the one before: {trouble}", refused)
        reload(settings)
        return _told("loaded anew", "")

    return sensor


def _told(words: str, cursor: str) -> dg.SensorResult:
    return dg.SensorResult(cursor=cursor, skip_reason=dg.SkipReason(words))


def tree_of(settings: Settings) -> str:
    """One text for all that the location is made of: each source and when it was changed, and the first days."""
    files = [path for package in PACKAGES for path in (settings.root / package).rglob("*.py")]
    files += [path for path in (first_days.places(settings),) if path.is_file()]
    seen = sorted(f"{path} {changed_at(path)}" for path in files)
    return sha256("\n".join(seen).encode()).hexdigest()[:16]


def trouble_of(settings: Settings) -> str:
    """Why the tree does not load, tried in a Python of its own; empty when it does."""
    env = {**settings.child_environment(), "PYTHONPATH": str(settings.root)}
    words = [sys.executable, "-c", _TRY]
    tried = subprocess.run(words, env=env, cwd=settings.root, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


def reload(settings: Settings) -> None:
    """As the page's button does; the code server starts the new one before it ends the old one."""
    query = json.dumps({"query": _RELOAD % json.dumps(LOCATION)}).encode()
    address = f"http://127.0.0.1:{settings.dagster.port}/graphql"
    request = urllib.request.Request(address, query, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
            said = json.load(reply)
    except OSError as error:
        raise ServiceUnavailable(f"Dagster at {address} does not answer: {error}.", remedy="Run `weir up`.") from error
    if said["data"]["reloadRepositoryLocation"]["__typename"] != "WorkspaceLocationEntry":
        raise ServiceUnavailable(f"Dagster did not load {LOCATION} anew: {said}.", remedy="See logs/dagster-code.log.")
