"""weir check."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_core.cli.context import job_names_here, settings_of
from platform_core.cli.output import AsJson, print_json, say
from platform_core.errors import DeclarationError, SetupError, WeirError

if TYPE_CHECKING:
    from platform_core.settings import Settings


@dataclass(frozen=True)
class CheckFinding:
    """One thing that was checked, and what is wrong with it; empty: nothing."""

    what: str
    wrong: str = ""


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel="Development")(check)


def check(
    context: typer.Context,
    jobs: Annotated[
        list[str] | None, typer.Argument(metavar="JOB...", help="These jobs alone.", autocompletion=job_names_here)
    ] = None,
    columns: Annotated[
        bool, typer.Option(help="Also run each transform over no records, and compare its columns with its table.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check what the working tree declares: topics, tables, jobs, suites, and the columns of every transform.

    Starts no service and reads no record. Comparing columns takes a Spark session, some 10 s.

    [bold]Examples[/bold]

      weir check

      weir check stock_stats

      weir check --no-columns
    """
    settings = settings_of(context)
    findings, daily = declarations(settings, jobs or [])
    sound = [one.what.removeprefix("job ") for one in findings if one.what.startswith("job ") and not one.wrong]
    if columns and sound:
        findings += columns_of(settings, sound, daily)
    _tell(findings, as_json)
    wrong = [one for one in findings if one.wrong]
    if wrong:
        raise DeclarationError(
            f"{len(wrong)} of {len(findings)} checks failed.", remedy="Correct the declarations that are named above."
        )


def declarations(settings: Settings, jobs: Sequence[str]) -> tuple[list[CheckFinding], list[str]]:
    """The findings, and the daily tables that can be looked at further."""
    from platform_core.declare import discover
    from platform_core.declare.agreement import Declared, disagreements

    root = settings.root
    declared = Declared({}, {}, {})

    def load(name: str) -> None:
        declared.jobs[name] = discover.load_job(name, root)

    findings = [_tried(f"job {name}", load, name) for name in jobs or discover.job_names(root)]
    if not jobs:
        findings.append(_tried("topics", discover.load_topics))
        findings.append(_tried("daily tables", lambda: declared.daily_tables.update(discover.load_daily_tables(root))))
        findings.append(_tried("suites", lambda: declared.suites.update(discover.load_suites(root))))
        if not any(one.wrong for one in findings):
            findings += [CheckFinding(what, wrong) for what, wrong in disagreements(declared)]
    return findings, list(declared.daily_tables)


def columns_of(settings: Settings, jobs: Sequence[str], daily: Sequence[str]) -> list[CheckFinding]:
    asked = json.dumps({"jobs": jobs, "daily": daily})
    command = [sys.executable, "-m", "platform_core.streaming.transform.columns", str(settings.root), asked]
    environment = {**settings.child_environment(), "PYTHONPATH": str(settings.root)}
    ran = subprocess.run(command, env=environment, cwd=settings.root, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
        raise SetupError(f"The columns could not be checked: {last}", remedy="See `weir doctor`.")
    wrong: dict[str, list[dict[str, str]]] = {name: [] for name in (*jobs, *daily)}
    for mismatch in json.loads(ran.stdout.splitlines()[-1]):
        wrong[mismatch["job"]].append(mismatch)
    return [CheckFinding(f"columns of {name}", "; ".join(_mismatch(one) for one in wrong[name])) for name in wrong]


def _mismatch(one: Mapping[str, str]) -> str:
    return f"{one['field']}: declared {one['declared']}, came {one['came']}"


def _tried(what: str, load: Callable[..., object], *arguments: Any) -> CheckFinding:
    try:
        load(*arguments)
    except WeirError as error:
        return CheckFinding(what, str(error))
    except Exception as error:  # whatever an author's module may raise at import
        return CheckFinding(what, f"it does not load: {type(error).__name__}: {error}")
    return CheckFinding(what)


def _tell(findings: Sequence[CheckFinding], as_json: bool) -> None:
    if as_json:
        print_json([asdict(one) for one in findings])
        return
    for one in findings:
        print(f"{'ok   ' if not one.wrong else 'WRONG'}  {one.what}{': ' if one.wrong else ''}{one.wrong}")
    if not any(one.wrong for one in findings):
        say("All is declared as it should be.")
