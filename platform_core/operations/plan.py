"""Plan: the working tree against the live release, also over the records of the last while, and nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from platform_core.control import releases
from platform_core.operations import Caller
from platform_core.operations.names import refuse_unknown
from platform_core.release.plan.changes import ChangeKind, kind_of
from platform_core.release.plan.plan import Plan, changes_of, plan_of
from platform_core.release.plan.tree import tree_of
from platform_core.release.plan.trial import Trial, sides


def plan(caller: Caller, job: str) -> Plan:
    refuse_unknown(caller, job)
    caller.store.migrate()
    return plan_of(job, caller.settings, caller.store)


def tried(
    caller: Caller, job: str, last: timedelta, most: int, tell: Callable[[str], None]
) -> tuple[Plan, Trial | None]:
    """The plan, made while both sides run. No trial where the live release runs the same code: nothing could differ."""
    refuse_unknown(caller, job)
    settings, store = caller.settings, caller.store
    store.migrate()
    live, tell = releases.live_or_refused(store, job), _timed(tell)
    tell(f"starting {live.title} and the working tree, each with its own Spark")
    with sides(settings, live) as both:  # their Sparks start meanwhile
        tell("comparing their declarations")
        tree = tree_of(settings, job)
        if kind_of(changes_of(settings, live, tree)) is ChangeKind.NONE:
            return plan_of(job, settings, store, tree), None
        result = both.run(tree, last, most, tell)
        tell("asking what a replay would read and cost")
        return plan_of(job, settings, store, tree), result()


def _timed(tell: Callable[[str], None]) -> Callable[[str], None]:
    """What is done at the moment, and how long all has taken so far."""
    began = time.monotonic()
    return lambda what: tell(f"{time.monotonic() - began:5.1f} s  {what} ...")
