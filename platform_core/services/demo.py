"""`make demo`: everything at work in one command, and all of it gone at ctrl-C."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

from rich.console import Console

from platform_core.control import drivers, progress
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.declare.discover import load_jobs, load_topics
from platform_core.declare.jobs import StreamingJob
from platform_core.errors import BatchFailed, ServiceUnavailable
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.steer import start
from platform_core.read.tables import open_tables
from platform_core.release import topics
from platform_core.services import kept, process, state
from platform_core.services.down import down
from platform_core.services.roster import managed
from platform_core.services.service import tail
from platform_core.services.up import up
from platform_core.settings import Settings, load
from platform_core.waiting import looks

CORE = frozenset({"postgres", "kafka", "supervisor"})  # the jobs need no more: the page may come while they start
JOBS = ("stock_stats", "clickstream", "word_count")  # whose rows come within seconds: the demo waits for those of each
GENERATORS = ("stocks", "clicks", "lines")
RESULT_SECONDS = 900.0  # a first start on two cores that are busy with other things
WHO = "demo"


def run(settings: Settings) -> None:
    """Until ctrl-C or SIGTERM; whatever happens, nothing runs afterwards."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # also where a shell's background made us ignore ctrl-C
    generators: dict[str, subprocess.Popen[bytes]] = {}
    try:
        _show(settings, console, generators)
        _stay(settings, console, generators)
    except KeyboardInterrupt:
        console.print("\nStopping.")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second ctrl-C would leave half of it running
        for child in generators.values():
            process.stop(Owner.of(child.pid), signal.SIGTERM, 10, child.poll)
        down(settings, console)


def _show(settings: Settings, console: Console, generators: dict[str, subprocess.Popen[bytes]]) -> None:
    began = time.monotonic()
    console.print(f"Starting the platform in {settings.home}")
    names = frozenset(service.name for service in managed(settings))
    up(settings, console, CORE & names)
    store = ControlStore.open(settings)
    created = topics.ensure(settings, list(load_topics().values())).created
    console.print(f"Topics: {len(created)} created ({', '.join(created) or 'all were there'})")
    before = _rows_out(store)
    releases = _start_jobs(settings, store, console)
    generators |= {kind: _generate(settings, kind) for kind in GENERATORS}
    console.print(f"Generators: {', '.join(GENERATORS)}")
    _await_results(store, releases, before, console, began)
    up(settings, console, names - CORE)
    _tell(settings, console, releases, time.monotonic() - began)
    store.close()


def _start_jobs(settings: Settings, store: ControlStore, console: Console) -> dict[ReleaseId, StreamingJob]:
    """The main ones; each of the other examples is a driver more, and starts by `weir start`."""
    releases: dict[ReleaseId, StreamingJob] = {}
    found = load_jobs(settings.root)
    for name, job in ((name, found[name]) for name in JOBS if name in found):
        (asked,) = start(Caller(settings, store, WHO, "make demo"), [name])
        releases[asked.release] = job
        console.print(f"Job {asked.release}: wanted to run")
    return releases


def _generate(settings: Settings, kind: str) -> subprocess.Popen[bytes]:
    env = settings.child_environment() | {"PYTHONPATH": str(settings.root)} | dict(kept.marks(settings.home, "demo"))
    command = (sys.executable, "-m", "ingest.generators", kind)
    return process.spawn(command, env, settings.storage.logs / f"generator-{kind}.log", settings.home)


def _rows_out(store: ControlStore) -> dict[ReleaseId, int]:
    return {release: one.totals["rows_out"] for release, one in progress.latest(store).items()}


def _await_results(
    store: ControlStore,
    releases: Mapping[ReleaseId, object],
    before: dict[ReleaseId, int],
    console: Console,
    began: float,
) -> None:
    """Rows that were written since the demo began; an earlier demo's are no proof."""
    told: dict[ReleaseId, str] = {}
    for again in looks(RESULT_SECONDS, pause=0.2):
        now, at_work = _rows_out(store), drivers.all(store)
        for release in releases:
            new = now.get(release, 0) - before.get(release, 0)
            words = _words(new, at_work.get(release))
            if told.get(release) != words and not told.get(release, "").startswith("first"):
                told[release] = words
                console.print(f"  {release!s:<15} {words:<30} {time.monotonic() - began:5.1f} s")
        if all(told[release].startswith("first") for release in releases):
            return
        if not again:
            late = ", ".join(f"{release} is {words}" for release, words in told.items())
            raise ServiceUnavailable(
                f"No results after {RESULT_SECONDS:.0f} s: {late}.", remedy="See logs/driver-*.log."
            )


def _words(new_rows: int, driver: drivers.DriverState | None) -> str:
    if new_rows > 0:
        return f"first results: {new_rows} rows"
    if driver is not None and driver.given_up:
        raise BatchFailed(f"{driver.release} failed: {driver.reason}", remedy=f"See `weir logs {driver.release.job}`.")
    return driver.state if driver is not None else "not begun"


def _tell(settings: Settings, console: Console, releases: Mapping[ReleaseId, StreamingJob], seconds: float) -> None:
    console.print(f"\nResults are in every table, {seconds:.0f} s after the start. What runs:")
    for one in state.read(settings.home).services:
        pid = f"pid {one.owner.pid}" if one.owner else ""
        console.print(f"  {one.name:<15} {one.phase:<9} {pid:<11} {one.address}".rstrip())
    tables = open_tables(settings)
    for release, job in releases.items():
        rows = tables.table(job.output.name).delta.to_pyarrow_dataset().count_rows()
        console.print(f"  {release!s:<15} running   table {job.output.name}: {rows} rows")
    console.print("\nWhere to look, from another terminal:")
    if settings.dagster.managed:
        console.print(
            f"  http://127.0.0.1:{settings.dagster.port}   Dagster: lineage, checks, start and stop of streams"
        )
    for command, shows in _commands(settings):
        console.print(f"  {command}   # {shows}")
    console.print("\nctrl-C stops everything.")


def _commands(settings: Settings) -> list[tuple[str, str]]:
    weir = " ".join([*_differing(settings), ".venv/bin/weir"])
    return [
        (f"{weir} status --watch", "jobs, lag, freshness"),
        (f'{weir} sql "select * from stock_stats limit 5"', "query the live tables"),
        (f"{weir} get word_count weir", "one key"),
        (f"{weir} logs stock_stats -f", "what a driver does"),
    ]


def _differing(settings: Settings) -> list[str]:
    """What another terminal must be told to find this platform."""
    usual = load(environment={})
    asked = {
        "WEIR_HOME": (settings.home, usual.home),
        "WEIR_PROFILE": (settings.profile, usual.profile),
        "WEIR_KAFKA__PORT": (settings.kafka.port, usual.kafka.port),
        "WEIR_POSTGRES__PORT": (settings.postgres.port, usual.postgres.port),
        "WEIR_DAGSTER__PORT": (settings.dagster.port, usual.dagster.port),
    }
    return [f"{name}={shlex.quote(str(is_))}" for name, (is_, would_be) in asked.items() if is_ != would_be]


def _stay(settings: Settings, console: Console, generators: dict[str, subprocess.Popen[bytes]]) -> None:
    while state.read(settings.home).kept:
        for kind, child in generators.items():
            if child.poll() is not None:
                log = settings.storage.logs / f"generator-{kind}.log"
                console.print(f"Generator {kind} ended with {child.returncode}; starting it again.{tail(log, 1)}")
                generators[kind] = _generate(settings, kind)
        time.sleep(1)
    raise ServiceUnavailable("The keeper has ended.", remedy=f"Read {settings.storage.logs / 'keeper.log'}.")
