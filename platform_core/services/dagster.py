"""Dagster: a code server, the forker of runs, the web page and the daemon, with their storage in Postgres.

Instead of `dg dev`, whose clean stop takes 35-40 s and which nobody restarts piece by piece. Web page and daemon share
the one code server; runs are forked from a process that has loaded the code, too.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import yaml

from platform_core.services import ports, postgres, process
from platform_core.services.service import Service
from platform_core.settings import Settings

MODULE, LOCATION = "infra.definitions", "weir"  # as workspace.yaml names them: sensors remember their location's name
BEHIND_STREAMS = 5  # pages and batch runs must not slow the streams
TABLES = ("runs", "event_logs", "instigators", "alembic_version")
PASSWORD = "WEIR_DAGSTER_PASSWORD"  # by name, as Dagster shows its configuration in process lists


def servers(settings: Settings) -> tuple[Service, ...]:
    return (code_server(settings), runs(settings), web_page(settings), daemon(settings))


def code_server(settings: Settings) -> Service:
    port = settings.dagster.port + 1
    words = ("code-server", "start", "-m", MODULE, "-p", str(port), "-h", "127.0.0.1", "--location-name", LOCATION)
    return _service(
        settings,
        "dagster-code",
        ("dagster", *words),
        ready=lambda: ports.answers(port),
        ports=(port,),
        memory_mb=2000,
    )


def runs(settings: Settings) -> Service:
    """Forks a worker for each run. Ready when it reads; until then the queue keeps runs."""
    words = (str(settings.root), MODULE, str(_pipe(settings)))
    return _service(
        settings,
        "dagster-runs",
        ("platform_core.orchestrate.forker", *words),
        ready=lambda: _read(_pipe(settings)),
        memory_mb=4000,  # with the runs at work
    )


def web_page(settings: Settings) -> Service:
    port = settings.dagster.port
    words = ("-h", "127.0.0.1", "-p", str(port), "-w", str(_home(settings) / "workspace.yaml"))
    return _service(
        settings,
        "dagster-web",
        ("dagster_webserver", *words),
        ready=lambda: answers(settings),
        ports=(port,),
        needs=("dagster-code",),
    )


def daemon(settings: Settings) -> Service:
    words = ("run", "-w", str(_home(settings) / "workspace.yaml"))
    return _service(
        settings,
        "dagster-daemon",
        ("dagster._daemon", *words),
        ready=lambda: _beats(settings),
        needs=("dagster-code",),
        prepare=lambda: _await_tables(settings),
    )


def _service(
    settings: Settings, name: str, module: tuple[str, ...], needs: tuple[str, ...] = (), **rest: Any
) -> Service:
    ours: dict[str, Any] = {"prepare": lambda: _configure(settings), **rest}
    return Service(
        name=name,
        command=(sys.executable, "-m", *module),
        environment=lambda: _environment(settings),
        niceness=BEHIND_STREAMS,
        needs=("postgres", *needs),
        log=settings.storage.logs / f"{name}.log",
        cwd=settings.home,
        port_setting="WEIR_DAGSTER__PORT",
        stop_seconds=15.0,
        **ours,
    )


def _home(settings: Settings) -> Path:
    return settings.home / "dagster"


def _pipe(settings: Settings) -> Path:
    return _home(settings) / "runs.pipe"


def _read(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:  # not there, or nobody has it open
        return False
    return True


def _environment(settings: Settings) -> dict[str, str]:
    env = settings.child_environment()
    env["DAGSTER_HOME"] = str(_home(settings))
    env["PYTHONPATH"] = str(settings.root)
    env["DAGSTER_GRPC_TIMEOUT_SECONDS"] = "180"  # of the code server's answers: beside busy streams 60 are not enough
    env["MALLOC_ARENA_MAX"] = "2"  # glibc keeps an arena a thread: a third less memory
    env[PASSWORD] = settings.password()
    return env


def _configure(settings: Settings) -> None:
    _home(settings).mkdir(parents=True, exist_ok=True)
    _write(_home(settings) / "dagster.yaml", instance(settings))
    _write(_home(settings) / "workspace.yaml", workspace(settings))


def _write(path: Path, content: dict[str, Any]) -> None:
    fresh = path.with_name(f"{path.name}.{uuid4().hex}")  # its services start at once, and each writes it
    fresh.write_text(yaml.safe_dump(content, sort_keys=False))
    fresh.replace(path)


def workspace(settings: Settings) -> dict[str, Any]:
    server = {"host": "127.0.0.1", "port": settings.dagster.port + 1, "location_name": LOCATION}
    return {"load_from": [{"grpc_server": server}]}


def instance(settings: Settings) -> dict[str, Any]:
    where = settings.postgres
    database = {"hostname": where.host, "port": where.port, "username": where.user, "password": {"env": PASSWORD}}
    return {
        "storage": {"postgres": {"postgres_db": {**database, "db_name": "dagster"}}},
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "sensors": {"use_threads": True, "num_workers": 4},  # else one slow sensor holds up the others
        "schedules": {"use_threads": True, "num_workers": 2},
        "run_launcher": {
            "module": "platform_core.orchestrate.launching",
            "class": "ForkingLauncher",
            "config": {"pipe": str(_pipe(settings))},
        },
        # Control jobs are short and must not wait behind a backfill; batch sessions take turns in their pool.
        "concurrency": {"runs": {"max_concurrent_runs": 8}, "pools": {"default_limit": 1, "granularity": "run"}},
        "run_queue": {
            "dequeue_interval_seconds": 2,
            "max_user_code_failure_retries": 24,  # with the delay two minutes, in which the forker is back
            "user_code_failure_retry_delay": 5,
        },
        # A run that was launched and did not begin is said to have failed, and asked for again; so is one whose worker
        # died. Operations that may not be done twice refuse the second (orchestrate/steering.py).
        "run_monitoring": {
            "enabled": True,
            "start_timeout_seconds": 120,
            "cancel_timeout_seconds": 60,
            "poll_interval_seconds": 10,
        },
        "run_retries": {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False},
        "retention": {
            "sensor": {"purge_after_days": {"skipped": 1, "success": 7, "failure": 30}},
            "schedule": {"purge_after_days": {"skipped": 1, "success": 30, "failure": 30}},
        },
    }


def _await_tables(settings: Settings) -> None:
    """At the very first start the web page makes them; two at once would get into each other's way."""
    _configure(settings)
    process.until(lambda: _tables_exist(settings), 60.0, pause=0.3)


def _tables_exist(settings: Settings) -> bool:
    with postgres.connect(settings, "dagster") as link:
        found = link.execute("select count(*) from pg_tables where tablename = any(%s)", (list(TABLES),)).fetchone()
    return found is not None and found[0] == len(TABLES)


def answers(settings: Settings) -> bool:
    return ports.answers(settings.dagster.port) and _ask(settings, "/server_info") is not None


def _ask(settings: Settings, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{settings.dagster.port}{path}", timeout=5) as reply:
            return json.load(reply)
    except (OSError, ValueError):
        return None


def location_trouble(settings: Settings) -> str:
    """Why the code location does not load; empty when it does."""
    query = "{workspaceOrError{... on Workspace{locationEntries{locationOrLoadError{... on PythonError{message}}}}}}"
    told = _ask(settings, "/graphql?query=" + urllib.parse.quote(query))
    try:
        entries = told["data"]["workspaceOrError"]["locationEntries"]
    except (KeyError, TypeError):
        return "the web page does not say"
    return "; ".join(
        one["locationOrLoadError"]["message"] for one in entries if one["locationOrLoadError"].get("message")
    )


def _beats(settings: Settings) -> bool:
    query = (
        "select count(*) from daemon_heartbeats where timestamp > (now() at time zone 'utc') - interval '60 seconds'"
    )
    try:
        with postgres.connect(settings, "dagster") as link:
            row = link.execute(query).fetchone()
    except psycopg.Error:  # not there yet, or its tables are not
        return False
    return row is not None and row[0] > 0
