"""weir logs."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import logs_here, settings_of
from platform_core.cli.output import AsJson, print_json
from platform_core.errors import UsageError

if TYPE_CHECKING:
    from platform_core.settings import Settings

_PANEL = "Jobs"


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(logs)


def logs(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="JOB|SERVICE", help="A job, a release, or a service such as kafka.", autocompletion=logs_here
        ),
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines.", min=0)] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the last lines of a log. A driver's lines are JSON, one decision each.

    [bold]Examples[/bold]

      weir logs stock_stats -f

      weir logs kafka -n 200

      weir logs stock_stats@v1 | jq 'select(.level == "error")'
    """
    path = log_of(settings_of(context), name)
    text, end = last_lines(path, lines)
    if as_json:
        if follow:
            raise UsageError("--json and --follow do not go together.", remedy="A driver's lines are JSON themselves.")
        print_json({"log": str(path), "lines": text.splitlines()})
        return
    print(text, end="", flush=True)
    if follow:
        for text in grown(path, end):
            print(text, end="", flush=True)


def log_of(settings: Settings, name: str) -> Path:
    """The log of a service, of a release, or of a job's newest driver."""
    folder = settings.storage.logs
    release = folder / f"driver-{name.replace('@', '-')}.log"
    newest = sorted(folder.glob(f"driver-{name}-v*.log"), key=lambda path: path.stat().st_mtime)
    for path in (folder / f"{name}.log", release, *newest[-1:]):
        if path.is_file():
            return path
    there = ", ".join(sorted(path.stem.removeprefix("driver-") for path in folder.glob("*.log"))) or "none"
    raise UsageError(f"There is no log of {name!r} in {folder}.", remedy=f"Logs there: {there}.")


def last_lines(path: Path, count: int) -> tuple[str, int]:
    """The last lines, and where they end; of a large file only its end is read."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - max(64_000, count * 2_000)))
        read = file.read()
        end = file.tell()
    lines = read.decode(errors="replace").splitlines(keepends=True)
    return "".join(lines[-count:] if count else []), end


def grown(path: Path, start: int, pause: float = 0.2) -> Generator[str]:
    """What is added to the file after `start`, also when it is replaced by a new one or cut."""
    file = path.open(errors="replace")
    file.seek(start)
    while True:
        text = file.read()
        if text:
            yield text
            continue
        time.sleep(pause)
        if _replaced(path, file.fileno(), file.tell()):
            file.close()
            file = path.open(errors="replace")


def _replaced(path: Path, descriptor: int, position: int) -> bool:
    import os

    try:
        now, then = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return now.st_ino != then.st_ino or now.st_size < position
