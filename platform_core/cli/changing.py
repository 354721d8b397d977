"""weir cutover, rollback, retire, reset, history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_core.cli.context import caller_of, job_names_here, releases_here, settings_of, store_of
from platform_core.cli.output import AsJson, print_json, say, text_table
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

if TYPE_CHECKING:
    from platform_core.control.store import ControlStore
    from platform_core.cutover.model import Cutover

_PANEL = "Releases"
Jobs = Annotated[
    list[str],
    typer.Argument(metavar="JOB...", help="Jobs; all their tables move at once.", autocompletion=job_names_here),
]
Job = Annotated[str, typer.Argument(help="A job.", autocompletion=job_names_here)]
Reason = Annotated[str, typer.Option(help="Kept in the audit.")]
Deadline = Annotated[float, typer.Option("--seconds", help="After so long it is given up, and nothing changes.", min=1)]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done.")]


def add_to(app: typer.Typer) -> None:
    for command in (cutover, rollback, retire, reset, history):
        app.command(rich_help_panel=_PANEL)(command)


def cutover(
    context: typer.Context,
    jobs: Jobs,
    reason: Reason = "",
    seconds: Deadline = 120.0,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Make the candidates of jobs live, all at one exact position, in one step.

    Refused unless the newest comparison passed and every candidate is one step away. Until all are ready nothing
    changes for readers; after the deadline the live releases go on as if nothing had been. A command that was killed
    is finished by the same command.

    [bold]Examples[/bold]

      weir cutover stock_stats

      weir cutover stock_stats clickstream --reason "averages in cents"

      weir cutover stock_stats@v2
    """
    from platform_core.operations import change

    caller = caller_of(context, reason)
    _finish(caller.store, change.cut_over(caller, jobs, seconds), wait, as_json)


def rollback(
    context: typer.Context,
    jobs: Jobs,
    reason: Reason = "",
    seconds: Deadline = 120.0,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Make the former releases of jobs live again, from the failing ones' last commits on. There are no gates.

    [bold]Examples[/bold]

      weir rollback stock_stats --reason "averages are off"

      weir rollback stock_stats clickstream

      weir rollback stock_stats@v1
    """
    from platform_core.operations import change

    caller = caller_of(context, reason)
    _finish(caller.store, change.roll_back(caller, jobs, seconds), wait, as_json)


def retire(
    context: typer.Context,
    release: Annotated[
        str, typer.Argument(help="A release that is not live, as in stock_stats@v1.", autocompletion=releases_here)
    ],
    as_json: AsJson = False,
) -> None:
    """Remove a release: its table, topic, checkpoint, consumer group and code. It cannot be had again.

    Refused, with a list, while it is live, or a cutover, a client or a hold needs it.

    [bold]Example[/bold]

      weir retire stock_stats@v1
    """
    from platform_core.operations import change

    gone = change.retire(caller_of(context), ReleaseId.parse(release))
    if as_json:
        print_json({"release": release, "removed": gone})
    else:
        print("\n".join([f"{release}: retired, nothing of it is left", *(f"  removed {one}" for one in gone)]))


def reset(
    context: typer.Context,
    job: Job,
    start: Annotated[str, typer.Option("--from", help="earliest, or a time as in 2026-01-31T12:00:00Z.")],
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop a job and start a new release of it from there, live at once: for those without room for two copies.

    Readers see the new table from the first batch on, and so an incomplete one until it has caught up. The old table
    stays until `weir retire`.

    [bold]Example[/bold]

      weir reset stock_stats --from earliest
    """
    from platform_core.operations import change

    if not yes and not typer.confirm(f"{job}: readers will see an incomplete table until it has caught up. Go on?"):
        raise UsageError(f"{job} was left as it is.", remedy="Give --yes to go on without being asked.")
    done = change.reset(caller_of(context, reason), job, start)
    if as_json:
        print_json({"old": done.old, "new": done.new, "from": start})
    else:
        print(f"{done.new}: live, from {start}. {done.old} is stopped; drop it with `weir retire {done.old}`.")


def history(
    context: typer.Context,
    job: Job,
    limit: Annotated[int, typer.Option(help="The most lines to show.", min=1, max=10_000)] = 50,
    as_json: AsJson = False,
) -> None:
    """Show who changed what of a job, and when: releases, cutovers, starts and stops, clients.

    [bold]Example[/bold]

      weir history stock_stats
    """
    from platform_core.control import audit

    store = store_of(settings_of(context))
    subjects = {job, *_tables(store, job)}
    lines = sorted((line for one in subjects for line in audit.read(store, one, limit)), key=lambda line: line.at)
    lines = lines[-limit:]
    if as_json:
        print_json([vars(line) for line in lines])
    elif lines:
        rows = [(_time(line.at), line.who, line.action, line.subject, _told(line.detail)) for line in lines]
        print(text_table(("at (UTC)", "who", "action", "what", "details"), rows))
    else:
        say(f"Nothing was ever asked of {job!r}.")


def _finish(store: ControlStore, found: Cutover, wait: bool, as_json: bool) -> None:
    from platform_core.operations.wait import for_cutover, refuse_aborted

    if wait and found.open:
        found = for_cutover(store, found, say)
    if as_json:
        print_json(_plain(found))
    else:
        print("\n".join(f"{move.table}: {_outcome(found, move.old, move.new)}" for move in found.moves))
    refuse_aborted(found)


def _outcome(found: Cutover, old: ReleaseId, new: ReleaseId) -> str:
    if found.phase in ("flipped", "swapped"):
        at = f" at {_time(found.flipped_at)} UTC" if found.flipped_at else ""
        return f"shows {new} since {found.kind} {found.id}{at}; {old} stands by"
    return f"still shows {old}; {found.kind} {found.id} to {new} is {found.phase}"


def _plain(found: Cutover) -> dict[str, Any]:
    from platform_core.control.position import as_text

    moves = [
        {
            "table": move.table,
            "old": str(move.old),
            "new": str(move.new),
            "offsets": None if move.paused_at is None else as_text(move.paused_at.places),
        }
        for move in found.moves
    ]
    told = {name: part for name, part in vars(found).items() if name not in ("moves", "late")}
    return {**told, "moves": moves}


def _tables(store: ControlStore, job: str) -> set[str]:
    from platform_core.control import releases

    found = [release.manifest.get("output", {}).get("table") for release in releases.of_job(store, job)]
    return {str(table) for table in found if table}


def _time(at: datetime) -> str:
    from datetime import UTC

    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _told(detail: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_word(part)}" for name, part in detail.items() if part not in ("", None))


def _word(part: Any) -> str:
    text = " ".join(str(one) for one in part) if isinstance(part, Sequence) and not isinstance(part, str) else str(part)
    return text[:12] if len(text) == 64 else text  # a hash
