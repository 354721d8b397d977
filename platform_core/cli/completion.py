"""weir completion."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel="Development")(completion)


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the script that completes commands, options and jobs; `weir --install-completion` installs it.

    [bold]Example[/bold]

      source <(weir completion bash)
    """
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="weir", complete_var="_WEIR_COMPLETE", shell=shell.value))
