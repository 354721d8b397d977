"""python -m tests.benchmarks [--quick] [names...]: what the platform costs, as a table."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from platform_core.services import java
from platform_core.settings import ROOT
from tests.benchmarks import at_rest, beside, catch_up, change, comparing, freshness, growth, idle, peer, results
from tests.benchmarks.asked import Asked
from tests.benchmarks.figures import FAILED, Figure, attempted, table, this_machine
from tests.benchmarks.platform import heed_signals, remove, sweep
from tests.benchmarks.results import Section

SECTIONS: dict[str, tuple[Callable[[Asked], list[Figure]], tuple[str, ...]]] = {
    "catch_up": (catch_up.measure, catch_up.NOTES),
    "freshness": (freshness.measure, freshness.NOTES),
    "growth": (growth.measure, growth.NOTES),
    "at_rest": (at_rest.measure, at_rest.NOTES),
    "idle": (idle.measure, idle.NOTES),
    "compare": (comparing.measure, comparing.NOTES),
    "beside": (beside.measure, beside.NOTES),
    "change": (change.measure, change.NOTES),
}
KEPT = ROOT / "infra" / "benchmarks"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parser().parse_args(arguments)
    heed_signals()
    work = Path(tempfile.mkdtemp(prefix="weir-benchmarks-", dir=asked.work)).resolve()
    plan = Asked(work, asked.peer.resolve(), asked.quick, tuple(asked.job))
    measured: dict[str, Section] = {}
    try:
        for name in asked.names or SECTIONS:
            measured[name] = _measured(name, plan)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    finally:
        sweep(work)
        remove(work)
    if keeps := asked.keep or (None if asked.quick or asked.job else KEPT):
        results.keep(keeps, measured)
        print(f"Kept in {keeps / 'latest.md'}")
    return 0 if all(_came(one) for one in measured.values()) else 1


def _measured(name: str, plan: Asked) -> Section:
    measure, notes = SECTIONS[name]
    plan.say(name)
    machine, began = this_machine(java.find().command), time.monotonic()
    folder = plan.work / name
    try:
        figures = attempted(name, lambda: measure(replace(plan, work=folder)))
    finally:
        sweep(folder)
        remove(folder)
    print(table(figures), flush=True)
    return Section.of_now(time.monotonic() - began, machine, figures, notes)


def _came(section: Section) -> bool:
    return not any(one.name == FAILED for one in section.figures)


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser("python -m tests.benchmarks", description=__doc__)
    add = whole.add_argument
    add("names", nargs="*", choices=[*SECTIONS, []], metavar="name", help=f"of {', '.join(SECTIONS)} (all)")
    add("--quick", action="store_true", help="short runs: figures to compare with each other, not kept")
    add("--job", action="append", default=[], help="catch_up and growth of this job alone, repeatable; not kept")
    add("--peer", type=Path, default=peer.PLACE, help="folder of a Kafka Streams peer (beside the repository)")
    add("--keep", type=Path, help="folder for latest.json and latest.md (infra/benchmarks; with --quick: none)")
    add("--work", type=Path, help="folder for state while it runs, a few GB (the system's temporary one)")
    return whole


if __name__ == "__main__":
    sys.exit(main())
