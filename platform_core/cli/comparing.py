"""weir compare."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.context import caller_of, job_names_here
from platform_core.cli.output import AsJson, print_json, say, text_table
from platform_core.errors import UsageError

if TYPE_CHECKING:
    from platform_core.compare import Comparison, Example
    from platform_core.compare.releases import Outcome

_PANEL = "Releases"
_SHOWN = 5  # examples of each kind
EXIT_DIFFERS = 1


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(compare)


def compare(
    context: typer.Context,
    job: Annotated[
        str,
        typer.Argument(help="A job, or one of its releases as in stock_stats@v2.", autocompletion=job_names_here),
    ],
    html: Annotated[Path | None, typer.Option(help="Also write a report with the differing rows side by side.")] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=HOW", help="Expect this too: changes, new, gone, 'within 0.01', 'within 1%'."),
    ] = None,
    explain: Annotated[
        bool, typer.Option(help="Read records again to tell what late ones account for; starts Spark if need be.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Compare a candidate's table with the live one's, row by row, at a position where both stood.

    Neither stands still for it. The verdict is kept, and a cutover asks for it. Exit codes: 0 pass, 1 fail.

    [bold]Examples[/bold]

      weir compare stock_stats

      weir compare stock_stats --html differences.html

      weir compare stock_stats@v3 --expect "avg_price=within 0.01"

      weir compare stock_stats --expect "*=new"     (rows that only the candidate has)
    """
    from platform_core.operations import compare as operation

    expected = _expected(expect or [])
    outcome = operation.compare(caller_of(context), job, expect=expected, explain=explain)
    if html is not None:
        _write(html, outcome)
    _show(outcome, as_json)
    raise typer.Exit(0 if outcome.verdict.passed else EXIT_DIFFERS)


def _expected(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        column, equals, how = text.partition("=")
        if not equals:
            raise UsageError(
                f"--expect {text!r} names no difference.", remedy="Write it as in --expect avg_price=changes."
            )
        found[column.strip()] = how.strip()
    return found


def _write(html: Path, outcome: Outcome) -> None:
    from platform_core.compare.report import page

    try:
        html.write_text(page(outcome.found, outcome.verdict, outcome.kept.at))
    except OSError as error:
        raise UsageError(f"--html {html}: {error.strerror}.", remedy="Name a file that can be written.") from error
    say(f"The report is in {html}.")


def _show(outcome: Outcome, as_json: bool) -> None:
    from platform_core.compare.report import lines

    if as_json:
        examples = [asdict(one) for one in outcome.found.examples]
        print_json({**outcome.found.figures(), **asdict(outcome.verdict), "examples": examples})
        return
    for line in lines(outcome.found, outcome.verdict):
        print(line)
    if not outcome.found.same:
        print(_differences(outcome.found))


def _differences(found: Comparison) -> str:
    labels = sorted(found.explained)
    columns = [(one.name, one.changed, one.unexplained, one.largest) for one in found.columns if one.changed]
    examples = [line for one in _chosen(found) for line in _lines(one)]
    tables = [
        (("", "found", "expected", *labels, "unexplained"), _counts(found, labels)),
        (("column", "differs in", "unexplained", "largest difference"), columns),
        (("key", "column", found.left, found.right, ""), examples),
    ]
    return "\n" + "\n\n".join(text_table(names, rows) for names, rows in tables if rows)


def _counts(found: Comparison, labels: list[str]) -> list[tuple[object, ...]]:
    from platform_core.compare.report import name_of

    return [
        (
            name_of(found, kind),
            one.found,
            one.found - one.unexpected,
            *(one.explained.get(label, 0) for label in labels),
            one.unexplained,
        )
        for kind, one in found.counts.items()
    ]


def _chosen(found: Comparison) -> list[Example]:
    return [one for kind in found.counts for one in [each for each in found.examples if each.kind == kind][:_SHOWN]]


def _lines(one: Example) -> list[tuple[str | None, ...]]:
    """A line for each column that differs; one for the whole row where a side has none."""
    key = " ".join(str(value) for value in (one.key or one.left or one.right or {}).values())
    if one.left is None or one.right is None:
        there = ["no row" if row is None else "a row" for row in (one.left, one.right)]
        return [(key, "", *there, one.because)]
    return [(key, name, one.left[name], one.right[name], one.because) for name in one.changed]
