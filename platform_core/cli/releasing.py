"""weir plan, release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_core.cli.context import caller_of, job_names_here
from platform_core.cli.output import AsJson, print_json, say, text_table
from platform_core.errors import UsageError

if TYPE_CHECKING:
    from platform_core.control.releases import Release
    from platform_core.control.store import ControlStore
    from platform_core.release.plan.plan import Plan
    from platform_core.release.plan.trial import Trial

_PANEL = "Releases"
EXIT_REVISION, EXIT_REPLAY = 10, 11
Job = Annotated[str, typer.Argument(help="A job of the working tree.", autocompletion=job_names_here)]


def add_to(app: typer.Typer) -> None:
    for command in (plan, release):
        app.command(rich_help_panel=_PANEL)(command)


def plan(
    context: typer.Context,
    job: Job,
    last: Annotated[
        str | None, typer.Option(help="Also run both transforms over the records of so long, as in 1h, and compare.")
    ] = None,
    most: Annotated[int, typer.Option(help="The most records that --last takes; the newest.", min=1)] = 500_000,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the working tree with the live release: nothing to do, a revision, or a replay; and what that costs.

    Changes nothing. Exit codes, for a pull request's check: 0 no change, 10 a revision, 11 must replay. With --last
    the differing rows are shown by key and column; in Markdown without the values of personal columns.

    [bold]Examples[/bold]

      weir plan stock_stats

      weir plan stock_stats --last 1h

      weir plan stock_stats --last 10m --markdown > comment.md
    """
    from platform_core.operations import plan as operation
    from platform_core.release.plan.recent import length

    caller = caller_of(context)
    if last is None:
        found, tried = operation.plan(caller, job), None
    else:
        found, tried = operation.tried(caller, job, length(last), most, say)
    _show(found, tried, as_markdown=as_markdown, as_json=as_json)
    raise typer.Exit(_code(found))


def release(
    context: typer.Context,
    job: Job,
    start: Annotated[
        str, typer.Option("--from", help="Where its replay begins: earliest, or a time, in UTC unless it has a zone.")
    ] = "earliest",
    revision: Annotated[
        bool,
        typer.Option("--revision", help="Other code for the live release, no replay. Refused if rows would differ."),
    ] = False,
    back_to: Annotated[
        int | None, typer.Option(help="Put a former revision of the live release in force; 0 is the first.", min=0)
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Replay also when no row would differ.")] = False,
    note: Annotated[str, typer.Option(help="Kept in the audit.")] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Show how far the replay is until it follows; of a revision, until it runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Freeze the working tree as the job's candidate: it replays history beside the live release, then follows it.

    See `weir plan JOB` first. A job has one candidate at a time. It publishes to NAME.vN, and nobody reads its table
    until `weir cutover`.

    [bold]Examples[/bold]

      weir release stock_stats --note "bids count, too"

      weir release stock_stats --wait

      weir release stock_stats --from "2026-01-31 12:00"

      weir release stock_stats --revision

      weir release stock_stats --back-to 0
    """
    if (revision or back_to is not None) and (again or start != "earliest" or (revision and back_to is not None)):
        raise UsageError("A revision replays nothing.", remedy="Give --revision or --back-to alone.")
    from platform_core.operations import change
    from platform_core.operations.wait import for_revision

    caller = caller_of(context, note)
    store = caller.store
    if revision or back_to is not None:
        made = change.revise(caller, job, back_to)
        _tell_warnings(made)
        if wait:
            for_revision(store, made)
        _tell_made(made, f"{made.title}: in force", as_json)
        return
    made = change.release(caller, job, start, again=again)
    _tell_warnings(made)
    said = f"{made.id}: replaying from {start}, beside the live release"
    if wait:
        say(said)
        made, said = replayed(made, store)
    _tell_made(made, said, as_json)


def replayed(made: Release, store: ControlStore) -> tuple[Release, str]:
    from platform_core.control import releases
    from platform_core.operations.wait import for_replay

    try:
        for_replay(store, made.id, say)
    except KeyboardInterrupt:
        say(f"{made.id} replays on; `weir status {made.id.job}` shows how far it is.")
        raise
    there = releases.get(store, made.id)
    return there, f"{there.id}: {there.state}; see `weir compare {there.id.job}`, then `weir cutover {there.id.job}`"


def _tell_warnings(made: Release) -> None:
    for warning in made.manifest.get("warnings", ()):
        say(f"warning: {warning}")


def _tell_made(made: Release, said: str, as_json: bool) -> None:
    if as_json:
        start = made.replay_from.plain() if made.replay_from else None
        told = {"release": made.id, "revision": made.revision, "state": made.state, "replay_from": start}
        print_json(told)
    else:
        print(said)


def _show(found: Plan, tried: Trial | None, *, as_markdown: bool, as_json: bool) -> None:
    from platform_core.release.plan import wording

    if as_json:
        print_json({**_plain(found), **({} if tried is None else {"last": _plain_trial(tried)})})
        return
    if as_markdown:
        print("\n".join([wording.markdown(found), *(wording.markdown_trial(tried) if tried else [])]))
        return
    table = text_table(wording.TOPICS, wording.topic_rows(found.reading)) if found.reading else ""
    print(wording.text(found, table))
    if tried is not None:
        names, rows = wording.examples(tried)
        print(wording.text_trial(tried, text_table(names, rows) if rows else ""))


def _plain_trial(tried: Trial) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(tried.range),
        "seconds": tried.seconds,
        "same": tried.comparison.same,
        "comparison": tried.comparison.figures(),
        "examples": [asdict(one) for one in tried.comparison.examples],
    }


def _plain(found: Plan) -> dict[str, Any]:
    from dataclasses import asdict

    plain: dict[str, Any] = {**asdict(found), "kind": found.kind.value, "exit": _code(found)}
    plain["changes"] = [{**asdict(one), "kind": one.kind.value} for one in found.changes]
    if found.reading is not None:
        plain["reading"] |= {"records": found.reading.records, "bytes": found.reading.bytes}
    return plain


def _code(found: Plan) -> int:
    from platform_core.release.plan.changes import ChangeKind

    return {ChangeKind.NONE: 0, ChangeKind.REVISION: EXIT_REVISION, ChangeKind.REPLAY: EXIT_REPLAY}[found.kind]
