"""weir start, stop, pause, restart, run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import caller_of, job_names_here
from platform_core.cli.output import AsJson, print_json, say
from platform_core.errors import UsageError

if TYPE_CHECKING:
    from platform_core.control.wanted import Wanted
    from platform_core.operations import Caller

_PANEL = "Jobs"
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="JOB...", help="Jobs, or releases as in stock_stats@v1.", autocompletion=job_names_here),
]
All = Annotated[bool, typer.Option("--all", help="Every job.")]
Reason = Annotated[str, typer.Option(help="Kept in the audit.")]
Wait = Annotated[float, typer.Option(help="Seconds to wait until it is so; 0: do not wait.", min=0)]


def add_to(app: typer.Typer) -> None:
    for command in (start, stop, pause, restart, run):
        app.command(rich_help_panel=_PANEL)(command)


def start(
    context: typer.Context,
    jobs: Names = None,
    every: All = False,
    reason: Reason = "",
    wait: Wait = 0.0,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Go on without records that retention removed before they were read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start jobs. The first start of a job freezes it as release v1; later ones go on where it stopped.

    The supervisor starts the drivers, and starts them again when they fail; after some failures in a row it gives up
    and `weir status` shows the reason.

    [bold]Examples[/bold]

      weir start stock_stats

      weir start --all --wait 60

      weir start stock_stats --accept-gap --reason "the broker's disk was too small"
    """
    from platform_core.declare.discover import job_names
    from platform_core.operations import steer

    _refuse_unclear(jobs, every)
    caller = caller_of(context, reason)
    names = _once(jobs or job_names(caller.settings.root))
    _finish(caller, steer.start(caller, names, accept_gap=accept_gap, tell=say), wait, as_json)


def stop(
    context: typer.Context,
    jobs: Names = None,
    every: All = False,
    reason: Reason = "",
    wait: Wait = 0.0,
    as_json: AsJson = False,
) -> None:
    """Stop jobs after the batch in flight. `weir start` goes on from there.

    [bold]Examples[/bold]

      weir stop stock_stats --reason "the broker is upgraded"

      weir stop --all --wait 60
    """
    from platform_core.operations import steer

    _change(context, steer.stop, jobs, every, reason, wait, as_json)


def pause(
    context: typer.Context,
    jobs: Names = None,
    every: All = False,
    reason: Reason = "",
    wait: Wait = 0.0,
    as_json: AsJson = False,
) -> None:
    """Stop jobs for a while: like stop, and `weir status` shows them as paused.

    [bold]Example[/bold]

      weir pause word_count --reason "its readers are away"
    """
    from platform_core.operations import steer

    _change(context, steer.pause, jobs, every, reason, wait, as_json)


def restart(
    context: typer.Context,
    jobs: Names = None,
    every: All = False,
    reason: Reason = "",
    wait: Wait = 0.0,
    as_json: AsJson = False,
) -> None:
    """End the drivers of jobs after the batch in flight and start others. Failures so far are forgotten.

    [bold]Example[/bold]

      weir restart stock_stats --wait 60
    """
    from platform_core.operations import steer

    _change(context, steer.restart, jobs, every, reason, wait, as_json)


def run(
    context: typer.Context,
    release: Annotated[
        str,
        typer.Argument(
            help="A release, as in stock_stats@v1, or a job: its live release.", autocompletion=job_names_here
        ),
    ],
) -> None:
    """Run one release in the foreground, as systemd or Kubernetes would. SIGTERM or ctrl-C ends it after its batch.

    It runs from its archive, whatever the working tree holds. Where a supervisor already runs it, this one waits for
    the lease, then gives up with code 75.

    [bold]Example[/bold]

      weir run stock_stats@v1
    """
    import os

    from platform_core.control import releases
    from platform_core.operations.names import release_of
    from platform_core.release.archive import command_for

    caller = caller_of(context)
    settings, chosen = caller.settings, releases.get(caller.store, release_of(caller, release))
    argv, environment = command_for(settings, chosen.id, chosen.revision)
    caller.store.close()
    os.chdir(settings.home)
    os.execve(argv[0], argv, environment)


def _change(
    context: typer.Context,
    change: Callable[..., list[Wanted]],
    jobs: list[str] | None,
    every: bool,
    reason: str,
    wait: float,
    as_json: bool,
) -> None:
    """With --all each job that was ever started."""
    from platform_core.operations import steer

    _refuse_unclear(jobs, every)
    caller = caller_of(context, reason)
    _finish(caller, change(caller, _once(jobs or steer.ever_started(caller.store))), wait, as_json)


def _refuse_unclear(jobs: Sequence[str] | None, every: bool) -> None:
    if bool(jobs) == every:
        raise UsageError("Name jobs, or give --all.", remedy="See `weir status` for what there is.")


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _finish(caller: Caller, asked: Sequence[Wanted], wait: float, as_json: bool) -> None:
    from platform_core.operations import supervised
    from platform_core.operations.wait import for_drivers

    if as_json:
        print_json([{"release": one.release, "wanted": one.state, "generation": one.generation} for one in asked])
    else:
        for one in asked:
            print(f"{one.release}: wanted to {one.state}")
    if not asked:
        say("No job was ever started.")
    supervised.told(caller)
    if wait:
        for_drivers(caller.store, asked, wait)
