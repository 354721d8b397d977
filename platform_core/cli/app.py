"""The command `weir`: its options, its groups, and how it ends."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import click
import typer
from typer.utils import get_params_from_function

from platform_core.cli import (
    changing,
    check,
    checkout,
    clients,
    comparing,
    completion,
    data,
    logs,
    platform,
    releasing,
    status,
    steering,
)
from platform_core.cli.context import CommandContext, profiles_here
from platform_core.cli.output import print_error, say
from platform_core.errors import UsageError, WeirError

EXIT_INTERNAL, EXIT_INTERRUPTED = 70, 130

app = typer.Typer(
    name="weir",
    no_args_is_help=True,
    suggest_commands=False,  # click does
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""A first session:  [bold]weir up[/bold], then [bold]weir start --all[/bold],
[bold]weir generate stocks --seconds 60[/bold], [bold]weir status[/bold],
[bold]weir get stock_stats MMM[/bold], [bold]weir down[/bold]. Exit codes: 0 done, 64 asked wrongly, 65 declared or data
wrong, 66 archive or position wrong, 69 installation, 75 try again later, 78 settings.""",
)


@app.callback()
def options(
    context: typer.Context,
    profile: Annotated[
        str | None, typer.Option(help="A name in infra/profiles, or a .toml file.", autocompletion=profiles_here)
    ] = None,
    home: Annotated[Path | None, typer.Option(help="Where all state lives; .weir in the checkout by default.")] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; anywhere in the line.")
    ] = False,
) -> None:
    """Streaming jobs that you can change safely."""
    _ = debug  # main() has taken it
    context.obj = CommandContext(profile, home)


for group in (platform, steering, releasing, comparing, changing, status, logs, data, clients, check, completion):
    group.add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in asked
    sys.exit(_run([word for word in asked if word != "--debug"], debug=debug))


def _run(asked: list[str], *, debug: bool) -> int:
    command = typer.main.get_command(app)
    if not asked or {"-h", "--help"} & set(asked):
        _teach(command)
    with _heard() as ctrl_c:
        try:
            checkout.enter([*asked, "--debug"] if debug else asked)
            code = command.main(asked, standalone_mode=False, prog_name="weir") or 0
            if code == EXIT_INTERRUPTED:  # typer has made an exit code of it
                say("interrupted")
            return code
        except (Exception, KeyboardInterrupt) as error:
            if ctrl_c or isinstance(error, click.Abort | KeyboardInterrupt):
                say("interrupted")
                return EXIT_INTERRUPTED
            return _failed(error, asked, debug=debug)


@contextmanager
def _heard() -> Generator[list[int]]:
    """Each ctrl-C. Libraries turn the exception that it raises into one of their own: DuckDB, in a query."""
    heard: list[int] = []
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield heard
        return

    def note(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield heard
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _failed(error: BaseException, asked: list[str], *, debug: bool) -> int:
    if isinstance(error, click.ClickException):
        error.show()
        return UsageError.exit_code
    if isinstance(error, BrokenPipeError):  # `weir sql ... | head` has seen enough
        sys.stdout = None
        return 0
    if debug:
        raise error
    if isinstance(error, WeirError):
        print_error(error, as_json="--json" in asked)
        return error.exit_code
    say(f"error: weir itself failed: {type(error).__name__}: {error}")
    say("Run it again with --debug, and report the traceback.")
    return EXIT_INTERNAL


def _teach(command: click.Command) -> None:
    """Gives arguments their help: typer 0.25 sets it, click 8.5 sets it to None afterwards."""
    for inner in getattr(command, "commands", {}).values():
        _teach(inner)
        if inner.callback is None:  # a group
            continue
        told = get_params_from_function(inspect.unwrap(inner.callback))
        for parameter in inner.params:
            info = told[parameter.name].default if parameter.name in told else None
            if isinstance(info, typer.models.ArgumentInfo):
                parameter.help = info.help
