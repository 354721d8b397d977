"""weir sql, get, generate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import settings_of, tables_here
from platform_core.cli.output import AsJson, print_json, say, text_table

if TYPE_CHECKING:
    from platform_core.read.answer import Answer, AnsweredFrom

_PANEL = "Data"
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
_MOST = 1_000_000
Limit = Annotated[int, typer.Option(help="The most rows to show.", min=1, max=_MOST)]
Seconds = Annotated[float, typer.Option(help="The longest that it may take.", min=0.01)]
As = Annotated[str | None, typer.Option("--client", help="Read what this client is bound to.")]


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(sql)
    app.command(rich_help_panel=_PANEL)(get)
    app.command(rich_help_panel=_PANEL, context_settings=_PASSED_ON)(generate)


def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="One SELECT, in DuckDB's SQL.")],
    limit: Limit = 1000,
    seconds: Seconds = 10.0,
    client: As = None,
    as_json: AsJson = False,
) -> None:
    """Query the live tables. Reads nothing else and writes nothing.

    [bold]Examples[/bold]

      weir sql "select ticker, max(avg_price) from stock_stats group by ticker"

      weir sql "show tables"

      weir sql "select reason, count(*) from stock_stats_rejects group by reason"

      weir sql --json "select * from word_count order by count desc limit 3" | jq

      weir sql --client month_end "select count(*) from stock_stats"

    Times are UTC. In JSON decimals are text, so that none is rounded.
    """
    from platform_core.read.query import sql as ask

    _show(ask(settings_of(context), query, limit, seconds, client), as_json)


def get(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="A table.", autocompletion=tables_here)],
    key: Annotated[list[str], typer.Argument(help="Its key, or the first columns of it.")],
    limit: Limit = 20,
    everything: Annotated[bool, typer.Option("--all", help="All rows, not the newest alone.")] = False,
    seconds: Seconds = 10.0,
    client: As = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest rows of a key, the newest first. Of a key with several columns the first ones are enough.

    [bold]Examples[/bold]

      weir get word_count weir

      weir get stock_stats MMM

      weir get stock_stats MMM --limit 5

      weir get stock_stats MMM "2026-01-31 12:00:05"
    """
    from platform_core.read.lookup import get as ask

    answer = ask(settings_of(context), table, key, _MOST if everything else limit, seconds, client)
    _show(answer, as_json, more="--limit, or all with --all")


def _show(answer: Answer, as_json: bool, more: str = "--limit") -> None:
    if as_json:
        print_json(answer.records())
    else:
        print(text_table(answer.columns, answer.rows))
        say(f"{len(answer.rows)} rows from {_sources(answer)}")
    if answer.truncated:
        say(f"There are more than {len(answer.rows)} rows. Show more with {more}.")


def _sources(answer: Answer) -> str:
    parts = [f"{name} ({_which(source)})" for name, source in answer.sources.items()]
    return ", ".join(parts) or "no table"


def _which(source: AnsweredFrom) -> str:
    return f"{source.release}, version {source.version}" if source.release else f"version {source.version}"


def _kinds(incomplete: str) -> list[str]:
    from ingest.generators.kinds import GENERATORS

    return [kind for kind in GENERATORS if kind.startswith(incomplete)]


def generate(
    context: typer.Context,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            autocompletion=_kinds,
        ),
    ] = None,
) -> None:
    """Send made-up records of a kind: stocks, clicks, lines, ... Live until ctrl-C, or history as fast as it goes.

    [bold]Examples[/bold]

      weir generate stocks --rate 1000 --seconds 60

      weir generate clicks --start-ms 1735689600000 --records 100000 --create-topics

      weir generate lines --late 0.01 --malformed 0.001 --duplicated 0.01 --far-future 0.001

      weir generate --help                                   all kinds

      weir generate stocks --help
    """
    from ingest.generators.__main__ import main

    words = [*([kind] if kind else []), *context.args]
    raise typer.Exit(main([*words, *_broker_of(context, words)]))


def _broker_of(context: typer.Context, words: list[str]) -> list[str]:
    """The profile's broker, where none is named."""
    if not words or {"-h", "--help", "--bootstrap"} & {word.partition("=")[0] for word in words}:
        return []
    kafka = settings_of(context).kafka
    client = [word for name, value in kafka.client.items() for word in ("--set", f"{name}={value}")]
    return ["--bootstrap", kafka.servers, *client]
