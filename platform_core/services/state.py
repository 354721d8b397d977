"""What the keeper says of each service, in a file that anyone can read: who it is, since when, why not."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from platform_core.control.owners import Owner


@dataclass(frozen=True)
class State:
    name: str
    phase: str = "waiting"  # waiting, starting, ready, silent, failed, stopping, stopped; external: not started by us
    owner: Owner | None = None
    since: float = 0.0  # wall clock, to be shown alone
    restarts: int = 0
    failures: int = 0  # in a row
    reason: str = ""
    address: str = ""
    log: str = ""

    @property
    def lives(self) -> bool:
        return self.owner is not None and self.owner.running


@dataclass(frozen=True)
class Board:
    keeper: Owner | None
    services: tuple[State, ...]

    @property
    def kept(self) -> bool:
        return self.keeper is not None and self.keeper.running

    def of(self, name: str) -> State | None:
        return next((state for state in self.services if state.name == name), None)


def changed(state: State, **changes: Any) -> State:
    return replace(state, **changes)


def path_of(home: Path) -> Path:
    return home / "run" / "keeper.json"


def read(home: Path) -> Board:
    try:
        told = json.loads(path_of(home).read_text())
    except (FileNotFoundError, ValueError):  # never up; a torn file cannot be, it is renamed into place
        return Board(None, ())
    return Board(_owner(told["keeper"]), tuple(_state(one) for one in told["services"]))


def now(home: Path) -> tuple[State, ...]:
    """What runs now, whether or not a keeper does."""
    board = read(home)
    return tuple(one if board.kept or one.phase == "external" else _unkept(one) for one in board.services)


def _unkept(one: State) -> State:
    if one.lives:
        return changed(one, phase="unkept", reason="The keeper has died. Run `weir up`.")
    return changed(one, phase="stopped", owner=None)


def _state(told: dict[str, Any]) -> State:
    return State(**{**told, "owner": _owner(told["owner"])})  # pyright: ignore[reportArgumentType]


def _owner(told: dict[str, Any] | None) -> Owner | None:
    return Owner(**told) if told else None


class Notes:
    """The keeper's own copy of the board; each change is written at once."""

    def __init__(self, home: Path, states: list[State]) -> None:
        self._path = path_of(home)
        self._keeper = Owner.this_process()
        self._states = {state.name: state for state in states}
        self._lock = threading.Lock()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._write()

    def of(self, name: str) -> State:
        return self._states[name]

    def all(self) -> tuple[State, ...]:
        return tuple(self._states.values())

    def change(self, name: str, **changes: Any) -> State:
        with self._lock:
            before = self._states[name]
            if "phase" in changes and changes["phase"] != before.phase:
                changes["since"] = time.time()
            self._states[name] = changed(before, **changes)
            self._write()
            return self._states[name]

    def _write(self) -> None:
        content = {"keeper": asdict(self._keeper), "services": [asdict(state) for state in self._states.values()]}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(content, indent=1))
        os.replace(fresh, self._path)
