"""weir plan, release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_core.cli.asked import job_names_here, settings_of, store_of
from platform_core.cli.output import AsJson, print_json, text_table
from platform_core.errors import UsageError

if TYPE_CHECKING:
    from platform_core.release.plan.plan import Plan
    from platform_core.settings import Settings

_PANEL = "Releases"
EXIT_REVISION, EXIT_REPLAY = 10, 11
Job = Annotated[str, typer.Argument(help="A job of the working tree.", autocompletion=job_names_here)]


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(plan)


def plan(
    context: typer.Context,
    job: Job,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the working tree with the live release: nothing to do, a revision, or a replay; and what that costs.

    Changes nothing. Exit codes, for a pull request's check: 0 no change, 10 a revision, 11 must replay.

    [bold]Examples[/bold]

      weir plan stock_stats

      weir plan stock_stats --markdown > comment.md
    """
    from platform_core.release.plan.plan import plan_of

    settings = settings_of(context)
    _refuse_unknown(job, settings)
    store = store_of(settings)
    store.migrate()
    found = plan_of(job, settings, store)
    _show(found, as_markdown=as_markdown, as_json=as_json)
    raise typer.Exit(_code(found))


def _show(found: Plan, *, as_markdown: bool, as_json: bool) -> None:
    from platform_core.release.plan import wording

    if as_json:
        print_json(_plain(found))
    elif as_markdown:
        print(wording.markdown(found))
    else:
        table = text_table(wording.TOPICS, wording.topic_rows(found.reading)) if found.reading else ""
        print(wording.text(found, table))


def _plain(found: Plan) -> dict[str, Any]:
    from dataclasses import asdict

    plain = {**asdict(found), "kind": found.kind.value, "exit": _code(found)}
    plain["changes"] = [{**asdict(one), "kind": one.kind.value} for one in found.changes]
    if found.reading is not None:
        plain["reading"] |= {"records": found.reading.records, "bytes": found.reading.bytes}
    return plain


def _code(found: Plan) -> int:
    from platform_core.release.plan.changes import Kind

    return {Kind.NONE: 0, Kind.REVISION: EXIT_REVISION, Kind.REPLAY: EXIT_REPLAY}[found.kind]


def _refuse_unknown(job: str, settings: Settings) -> None:
    from platform_core.declare.discover import job_names

    known = job_names(settings.root)
    if job not in known:
        raise UsageError(f"There is no job {job!r}.", remedy=f"Jobs: {', '.join(known) or 'none'}.")
