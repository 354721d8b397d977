"""weir client bind, unbind, list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import settings_of, store_of, who
from platform_core.cli.output import AsJson, print_json, say, text_table
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

if TYPE_CHECKING:
    from platform_core.control.clients import Client
    from platform_core.control.store import ControlStore

Name = Annotated[str, typer.Argument(help="The client: a report, a service, a person.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", help="Pin readers to a release, or move them one by one."
    )
    for command, name in ((bind, "bind"), (unbind, "unbind"), (listed, "list")):
        group.command(name)(command)
    app.add_typer(group, name="client", rich_help_panel="Data")


def bind(
    context: typer.Context,
    name: Name,
    table: Annotated[str, typer.Argument(help="A table.")],
    to: Annotated[str, typer.Option(help="live, or a release: v1, or stock_stats@v1.")],
    as_json: AsJson = False,
) -> None:
    """Bind a client to a release of a table, or to whatever is live.

    It reads there with `weir sql --client NAME`, or `open_tables(settings, client=NAME)`. A release that a client is
    pinned to is not retired.

    [bold]Examples[/bold]

      weir client bind month_end stock_stats --to v1

      weir client bind month_end stock_stats --to live
    """
    from platform_core.control import clients

    store = store_of(settings_of(context))
    bound = clients.bind(store, name, table, _release(store, table, to), who())
    if as_json:
        print_json(_plain(bound))
    else:
        print(f"{bound.name}: reads {bound.table} from {bound.release or 'whatever is live'}")


def unbind(
    context: typer.Context,
    name: Name,
    table: Annotated[str | None, typer.Argument(help="A table; all of them without.")] = None,
    as_json: AsJson = False,
) -> None:
    """Forget a client, or its binding to one table.

    [bold]Example[/bold]

      weir client unbind month_end
    """
    from platform_core.control import clients

    gone = clients.unbind(store_of(settings_of(context)), name, table, who())
    if as_json:
        print_json([_plain(one) for one in gone])
    else:
        print(f"{name}: no longer bound to {', '.join(one.table for one in gone)}")


def listed(context: typer.Context, as_json: AsJson = False) -> None:
    """Show all clients and what they read.

    [bold]Example[/bold]

      weir client list
    """
    from platform_core.control import clients

    found = clients.all(store_of(settings_of(context)))
    if as_json:
        print_json([_plain(one) for one in found])
    elif found:
        rows = [(one.name, one.table, str(one.release or "live"), one.bound_at, one.by) for one in found]
        print(text_table(("client", "table", "reads", "since", "by"), rows))
    else:
        say("No client is bound. Make one with `weir client bind NAME TABLE --to live`.")


def _release(store: ControlStore, table: str, to: str) -> ReleaseId | None:
    """`v1` is of the job that writes the table now."""
    if to == "live":
        return None
    if "@" in to:
        return ReleaseId.parse(to)
    from platform_core.control import aliases

    live = aliases.live(store, table)
    if live is None:
        raise UsageError(f"There is no table {table!r}.", remedy='See `weir sql "show tables"`.')
    return ReleaseId.parse(f"{live.release.job}@{to}")


def _plain(client: Client) -> dict[str, object]:
    return {**vars(client), "release": None if client.release is None else str(client.release)}
