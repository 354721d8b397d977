"""weir status: what runs, how far it is, and why not."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_core.cli.context import job_names_here, settings_of, store_of
from platform_core.cli.output import AsJson, print_json, say, text_table
from platform_core.errors import WeirError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from platform_core.control.services import SupervisorHealth
    from platform_core.operations.status import StatusLine
    from platform_core.services.state import State
    from platform_core.settings import Settings

_RELEASES = ("job", "release", "state", "lag", "rows/s", "fresh", "batch", "late", "rejected", "restarts", "reason")
_SERVICES = ("service", "state", "address", "restarts", "reason")
_COLOURS = {"running": "green", "ready": "green", "failed": "red", "silent": "red"}


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel="Jobs")(status)


def status(
    context: typer.Context,
    jobs: Annotated[
        list[str] | None, typer.Argument(metavar="JOB...", help="These jobs alone.", autocompletion=job_names_here)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until ctrl-C.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks of --watch.", min=0.1)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show every release: its state, lag in records, rows a second, freshness, batch time, restarts, and the reason.

    Freshness is the time from the newest record's timestamp to its row being readable.

    [bold]Examples[/bold]

      weir status

      weir status stock_stats --watch

      weir status --json | jq '.releases[] | select(.state != "running")'
    """
    look = Look(settings_of(context), frozenset(jobs or ()))
    if watch and sys.stdout.isatty() and not as_json:
        _watch(look, every)
    while True:
        _print(look, as_json)
        if not watch:
            return
        time.sleep(every)


class Look:
    """One look after another at a platform, over one connection."""

    def __init__(self, settings: Settings, jobs: frozenset[str]) -> None:
        self._settings, self._jobs = settings, jobs
        self._store = None

    def services(self) -> Sequence[State]:
        """Those that `weir up` keeps, or left; their states are in a file, and known when nothing else answers."""
        from platform_core.services import state

        found = state.now(self._settings.home)
        return found if any(one.phase not in ("stopped", "external") for one in found) else ()

    def releases(self) -> tuple[list[StatusLine], SupervisorHealth]:
        from platform_core.operations import status

        self._store = self._store or store_of(self._settings)
        read = status.read(self._store)
        return status.lines(read, self._jobs), read.supervision


def _print(look: Look, as_json: bool) -> None:
    services = look.services()
    if not as_json and services:
        print(text_table(_SERVICES, [_service(one) for one in services]) + "\n", flush=True)
    told = [dict(zip(_SERVICES, _service(one), strict=True)) for one in services]
    try:
        releases, there = look.releases()
    except WeirError as error:
        if as_json and told:
            print_json({"error": error.what, "services": told})
        raise
    if as_json:
        print_json({"supervisor": asdict(there), "services": told, "releases": [asdict(line) for line in releases]})
        return
    print(text_table(_RELEASES, [line.cells() for line in releases]) if releases else "No job was started yet.")
    say(str(there))


def _service(one: State) -> tuple[Any, ...]:
    return (one.name, one.phase, one.address, one.restarts, one.reason)


def _watch(look: Look, every: float) -> None:
    from rich.live import Live

    with Live(refresh_per_second=4, screen=True) as live:
        while True:
            live.update(_drawn(look))
            time.sleep(every)


def _drawn(look: Look) -> RenderableType:
    """A control store that is away for a while is told, and asked again."""
    from rich.console import Group

    services = _coloured(_SERVICES, [_service(one) for one in look.services()], state=1)
    try:
        releases, there = look.releases()
    except WeirError as error:
        return Group(services, f"{error.what}\n{error.remedy}")
    table = _coloured(_RELEASES, [line.cells() for line in releases], state=2)
    return Group(services, table, str(there))


def _coloured(headings: Sequence[str], rows: Sequence[Sequence[Any]], state: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings)
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        colour = _COLOURS.get(cells[state].split(" ")[0], "yellow")
        table.add_row(*cells[:state], Text(cells[state], style=colour), *(Text(cell) for cell in cells[state + 1 :]))
    return table
