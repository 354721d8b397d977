"""weir up, down, demo, doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import settings_of, store_of, who
from platform_core.cli.output import AsJson, print_json, say
from platform_core.errors import SetupError

if TYPE_CHECKING:
    from platform_core.settings import Settings


def add_to(app: typer.Typer) -> None:
    for command in (up, down, doctor, demo):
        app.command(rich_help_panel="Platform")(command)


def up(context: typer.Context, as_json: AsJson = False) -> None:
    """Start the services of the profile and wait until they are ready: broker, Postgres, supervisor, Dagster.

    Services that run already are left alone; one that crashes later is started again. Jobs that were wanted to run
    when the platform went down run again.

    [bold]Examples[/bold]

      weir up

      WEIR_HOME=/tmp/second WEIR_KAFKA__PORT=29092 WEIR_POSTGRES__PORT=29432 WEIR_DAGSTER__PORT=29300 weir up
    """
    from rich.console import Console

    from platform_core.services import up as services

    settings = settings_of(context)
    say(f"platform of {settings.root}, all state in {settings.home}")
    services.up(settings, Console(stderr=as_json))
    _tell(settings, as_json)


def down(context: typer.Context, as_json: AsJson = False) -> None:
    """Stop all jobs after the batch in flight, then all services. Nothing is left running, and no data is lost.

    [bold]Example[/bold]

      weir down
    """
    from rich.console import Console

    from platform_core.services import down as services

    settings = settings_of(context)
    services.down(settings, Console(stderr=as_json))
    _tell(settings, as_json)


def _tell(settings: Settings, as_json: bool) -> None:
    from platform_core.services import state

    if as_json:
        found = state.now(settings.home)
        print_json([{"service": one.name, "state": one.phase, "address": one.address} for one in found])


def demo(context: typer.Context) -> None:
    """Start the platform, the generators and the three jobs, wait for first results, and stop all at ctrl-C.

    [bold]Example[/bold]

      weir demo
    """
    from platform_core.services import demo as services

    services.run(settings_of(context))


def doctor(
    context: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Restore aliases from the log in the warehouse, releases from archives.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Examine the machine, the installation and what runs, and say what to do.

    [bold]Examples[/bold]

      weir doctor

      weir doctor --json | jq '.[] | select(.ok | not)'

      weir doctor --rebuild
    """
    if rebuild:
        _rebuild(context, as_json)
        return
    from platform_core.services import doctor as services

    findings = services.examine(settings_of(context))
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        for finding in findings:
            print(finding)
    wrong = [finding for finding in findings if not finding.ok]
    if wrong:
        raise SetupError(f"{len(wrong)} of {len(findings)} findings need attention.", remedy="Do what they say.")


def _rebuild(context: typer.Context, as_json: bool) -> None:
    """For a control store that was lost. What it knows as well or better stays."""
    from platform_core.release.rebuild import rebuild

    settings = settings_of(context)
    told = rebuild(settings, store_of(settings), who())
    if as_json:
        print_json(told)
    else:
        print("\n".join(told) or "Nothing to restore: the control store knows all that the log says.")
