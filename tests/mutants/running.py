"""Runs mutants in a copy of the tree: what git knows and what is new, as it stands, with the same .venv."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutants.table import Mutant

Outcome = Literal["killed", "SURVIVED", "BROKEN"]
_PASSED, _FAILED = 0, 1  # pytest's exit codes; any other says that the tests did not run
_LINES = 15


@dataclass(frozen=True)
class Result:
    mutant: str
    outcome: Outcome
    said: str = ""


def run(root: Path, mutants: Iterable[Mutant]) -> Iterator[Result]:
    """One after another, each as soon as it is known."""
    chosen = list(mutants)
    with copied(root) as tree:
        sound = _pytest(tree, sorted({test for one in chosen for test in one.tests}))
        if sound.returncode != _PASSED:
            yield Result("(none)", "BROKEN", f"the tests fail without a mutant:\n{_end(sound)}")
            return
        for one in chosen:
            yield _tried(tree, one)


@contextmanager
def copied(root: Path) -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="weir-mutants-") as folder:
        tree = Path(folder) / "tree"
        for name in _files(root):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
        (tree / ".venv").symlink_to(root / ".venv", target_is_directory=True)
        yield tree


@contextmanager
def applied(tree: Path, mutant: Mutant) -> Generator[None]:
    file = tree / mutant.file
    before = file.read_text()
    _write(file, mutated(before, mutant))
    try:
        yield
    finally:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    """Without what was compiled of it: within a second of the change that would be taken for the new one."""
    file.write_text(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def mutated(text: str, mutant: Mutant) -> str:
    found = text.count(mutant.source)
    if found != 1:
        raise ValueError(
            f"Mutant {mutant.name}: its source text occurs {found} times in {mutant.file}, not once. "
            "Write down in tests/mutants/table.py where that promise is kept now."
        )
    return text.replace(mutant.source, mutant.becomes)


def _tried(tree: Path, mutant: Mutant) -> Result:
    with applied(tree, mutant):
        ended = _pytest(tree, mutant.tests)
    if ended.returncode == _FAILED:
        return Result(mutant.name, "killed")
    if ended.returncode == _PASSED:
        return Result(mutant.name, "SURVIVED", f"{', '.join(mutant.tests)} passed")
    return Result(mutant.name, "BROKEN", _end(ended))


def _pytest(tree: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def _files(root: Path) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def _end(ended: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((ended.stdout + ended.stderr).splitlines()[-_LINES:])
