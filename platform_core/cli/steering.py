"""weir start, stop, pause, restart, run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from platform_core.cli.asked import job_names_here, refuse_unknown_job, settings_of, store_of, who
from platform_core.cli.awaiting import await_all
from platform_core.cli.output import AsJson, print_json, say
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.names import ReleaseId

if TYPE_CHECKING:
    from platform_core.control.store import ControlStore
    from platform_core.control.wanted import Wanted
    from platform_core.settings import Settings

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
    from platform_core.control import wanted

    _refuse_unclear(jobs, every)
    settings = settings_of(context)
    store = store_of(settings)
    store.migrate()
    by = who()
    releases = [_to_start(name, settings, store, by) for name in _chosen(jobs, settings)]
    if accept_gap:
        _accept_gaps(store, releases, by)
    asked = [wanted.want(store, release, "run", by, reason) for release in releases]
    _finish(store, asked, "run", wait, as_json)


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
    _want(context, "stop", (jobs, every, reason, wait, as_json))


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
    _want(context, "pause", (jobs, every, reason, wait, as_json))


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
    from platform_core.control import wanted

    _refuse_unclear(jobs, every)
    settings = settings_of(context)
    store = store_of(settings)
    releases = [_live(name, store, settings) for name in _chosen(jobs, settings, started=store)]
    _finish(store, [wanted.restart(store, release, who(), reason) for release in releases], "run", wait, as_json)


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
    from platform_core.release.archive import command_for

    settings = settings_of(context)
    store = store_of(settings)
    chosen = releases.get(store, _live(release, store, settings))
    argv, environment = command_for(settings, chosen.id, chosen.revision)
    store.close()
    os.chdir(settings.home)
    os.execve(argv[0], argv, environment)


def _want(context: typer.Context, state: str, asked: tuple[list[str] | None, bool, str, float, bool]) -> None:
    from platform_core.control import wanted

    jobs, every, reason, wait, as_json = asked
    _refuse_unclear(jobs, every)
    settings = settings_of(context)
    store = store_of(settings)
    releases = [_live(name, store, settings) for name in _chosen(jobs, settings, started=store)]
    done = [wanted.want(store, release, "pause" if state == "pause" else "stop", who(), reason) for release in releases]
    _finish(store, done, state, wait, as_json)


def _refuse_unclear(jobs: Sequence[str] | None, every: bool) -> None:
    if bool(jobs) == every:
        raise UsageError("Name jobs, or give --all.", remedy="See `weir status` for what there is.")


def _chosen(jobs: Sequence[str] | None, settings: Settings, started: ControlStore | None = None) -> list[str]:
    """What was named; with --all each job of the tree, or each that was ever started."""
    if jobs:
        return list(dict.fromkeys(jobs))
    if started is not None:
        from platform_core.control import wanted

        return [str(release) for release in wanted.all(started)]
    from platform_core.declare.discover import job_names

    return job_names(settings.root)


def _accept_gaps(store: ControlStore, releases: Sequence[ReleaseId], by: str) -> None:
    from platform_core.control import gaps

    for release in releases:
        lost = gaps.accept(store, release, by)
        if not lost:
            raise UsageError(f"{release} has met no gap that waits to be accepted.", remedy="Start it without that.")
        say(f"{release}: goes on without {sum(gap.records for gap in lost)} records, {', '.join(map(str, lost))}")


def _to_start(name: str, settings: Settings, store: ControlStore, by: str) -> ReleaseId:
    from platform_core.control import releases
    from platform_core.declare.discover import job_names
    from platform_core.release.first import first_release

    if "@" in name:
        found = releases.get(store, ReleaseId.parse(name))
        if found.state == "retired":
            raise UsageError(f"{found.id} is retired: nothing of it is left.", remedy="Make a new one: `weir release`.")
        return found.id
    if not releases.of_job(store, name):
        refuse_unknown_job(name, job_names(settings.root))
        say(f"{name}: freezing release v1 ...")
    release = first_release(name, settings, store, by)
    for warning in release.manifest.get("warnings", ()):
        say(f"warning: {warning}")
    return release.id


def _live(name: str, store: ControlStore, settings: Settings) -> ReleaseId:
    from platform_core.control import releases
    from platform_core.declare.discover import job_names

    if "@" in name:
        return releases.get(store, ReleaseId.parse(name)).id
    live = releases.live_of(store, name)
    if live is None:
        refuse_unknown_job(name, [*job_names(settings.root), *(one.id.job for one in releases.all(store))])
        raise UsageError(f"Job {name!r} has no live release.", remedy=f"`weir start {name}` makes one.")
    return live


def _finish(store: ControlStore, asked: Sequence[Wanted], state: str, wait: float, as_json: bool) -> None:
    if as_json:
        print_json([{"release": one.release, "wanted": one.state, "generation": one.generation} for one in asked])
    else:
        for one in asked:
            print(f"{one.release}: wanted to {one.state}")
    if not asked:
        say("No job was ever started.")
    _refuse_silence(store)
    if wait:
        await_all(store, asked, state, wait)


def _refuse_silence(store: ControlStore) -> None:
    """What is wanted stays wanted; but whoever asked must know that nothing will happen now."""
    from platform_core.control import services

    beat = services.all(store).get("supervisor")
    if beat is None or beat.age_seconds > services.SILENT_SECONDS:
        heard = "was never there" if beat is None else f"was last heard of {beat.age_seconds:.0f} s ago"
        raise ServiceUnavailable(
            f"NOTHING SUPERVISES: the supervisor {heard}. What you asked for is noted, and will be done once it runs.",
            remedy="Start it with `weir up`.",
        )
