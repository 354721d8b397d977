"""Asking for a cutover, and for the way back. What is asked for, the supervisor and the drivers carry through.

Asked again, while it is under way or after it was done, each returns what is there: so a command that was killed is
finished by the same command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from platform_core.control import aliases, releases, wanted
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.cutover import gates, protocol
from platform_core.cutover.model import Cutover, Kind, Move
from platform_core.errors import UsageError
from platform_core.names import ReleaseId, named

DEADLINE_SECONDS = 120.0
FactsOf = Callable[[ControlStore, Move], gates.GateFacts]


def cut_over(
    store: ControlStore,
    names: Sequence[str],
    by: str,
    *,
    reason: str = "",
    seconds: float = DEADLINE_SECONDS,
    facts_of: FactsOf = gates.facts_of,
) -> Cutover:
    """All tables of the jobs, to their candidates, in one. UsageError with everything that a gate refuses."""
    moves = [_forward(store, one) for one in names]
    there = _there_already(store, "cutover", moves)
    if there is not None:
        return there
    _refuse_unmoved(moves)
    refused = [one for move in moves for one in gates.refusals(facts_of(store, move))]
    if refused:
        raise UsageError(
            f"No cutover: {'; '.join(one.what for one in refused)}.",
            remedy=" ".join(dict.fromkeys(one.remedy for one in refused)),
        )
    return protocol.request(store, moves, "cutover", by, seconds, reason)


def roll_back(
    store: ControlStore, names: Sequence[str], by: str, *, reason: str = "", seconds: float = DEADLINE_SECONDS
) -> Cutover:
    """All tables of the jobs, back to the releases that they were cut over from; no gates: it shall always go."""
    moves = [_back(store, one) for one in names]
    there = _there_already(store, "rollback", moves)
    if there is not None:
        return there
    _refuse_unmoved(moves)
    for move in moves:
        _refuse_unable(store, move)
        wanted.want(store, move.new, "run", by, f"rollback of {move.old}")
    return protocol.request(store, moves, "rollback", by, seconds, reason)


def _forward(store: ControlStore, name: str) -> Move:
    """A move to itself says that it is live already."""
    job, asked = named(name)
    table, live = _live(store, job)
    found = asked or next((one.id for one in releases.of_job(store, job) if _candidate(one)), None)
    if found is None:
        done = _last(store, table, "cutover")
        if done is not None and done.new == live:
            return Move(table, live, live)
        standby = [one.id for one in releases.of_job(store, job) if one.state == "standby"]
        forward = f", or name one on standby, as in `weir cutover {standby[-1]}`" if standby else ""
        raise UsageError(f"{job} has no candidate.", remedy=f"Make one with `weir release {job}`{forward}.")
    releases.refuse_other_table(releases.get(store, found), table)
    return Move(table, live, found)


def _back(store: ControlStore, name: str) -> Move:
    job, asked = named(name)
    table, live = _live(store, job)
    if asked is not None:
        releases.refuse_other_table(releases.get(store, asked), table)
        return Move(table, live, asked)
    for done in protocol.of_table(store, table):
        move = next(move for move in done.moves if move.table == table)
        if done.phase in ("flipped", "swapped") and move.new == live:
            return Move(table, live, live if done.kind == "rollback" else move.old)
    raise UsageError(
        f"{live} was not cut over to: there is nothing to go back to.",
        remedy=f"Name a release that stands by, as in `weir rollback {job}@v1`; see `weir status`.",
    )


def _candidate(release: Release) -> bool:
    return release.state in releases.CANDIDATE


def _live(store: ControlStore, job: str) -> tuple[str, ReleaseId]:
    for table, alias in aliases.all(store).items():
        if alias.release.job == job:
            return table, alias.release
    raise UsageError(f"Job {job!r} has no live release.", remedy=f"`weir start {job}` makes one.")


def _refuse_unable(store: ControlStore, move: Move) -> None:
    state = releases.get(store, move.new).state
    if state != "standby":
        raise UsageError(
            f"{move.new} is {state}; only a release that stands by takes over without gates.",
            remedy="Cut over to a candidate instead: `weir release` the older code, then `weir cutover`.",
        )


def _refuse_unmoved(moves: Sequence[Move]) -> None:
    """Some are there already, and others not: what was meant is not clear."""
    for move in moves:
        if move.old == move.new:
            raise UsageError(f"{move.new} is live already.", remedy="Leave it out.")
    if len({move.table for move in moves}) < len(moves):
        raise UsageError("A job was named twice.", remedy="Name each once.")


def _there_already(store: ControlStore, kind: Kind, moves: Sequence[Move]) -> Cutover | None:
    """The open one that does just this, or the one that has done it."""
    wanted_moves = {(move.table, move.new) for move in moves}
    for found in protocol.of_table(store, moves[0].table):
        same = found.kind == kind and {(move.table, move.new) for move in found.moves} == wanted_moves
        if same and found.open:
            return found
        if same and found.phase == "swapped" and all(move.old == move.new for move in moves):
            return found
    return None


def _last(store: ControlStore, table: str, kind: Kind) -> Move | None:
    """The newest move of the table that was made."""
    for done in protocol.of_table(store, table):
        if done.phase in ("flipped", "swapped"):
            return next(move for move in done.moves if move.table == table) if done.kind == kind else None
    return None
