"""An archive is what was frozen, or it does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_core.errors import ArchiveError, SetupError
from platform_core.names import ReleaseId
from platform_core.release import archive, environment
from platform_core.release.contents import LOCK, code_files
from platform_core.release.manifest import CODE, MANIFEST
from platform_core.settings import Settings
from tests.release.conftest import Tree, environment_kept, frozen_by_hand

Damage = Callable[[Path, str], object]


def _open(path: Path) -> Path:
    for folder in (path, *path.parents[:4]):
        if folder.exists():
            folder.chmod(0o755)
    return path


def _change(code: Path, job: str) -> None:
    _open(code / f"streaming_jobs/{job}/job.py").write_text("GREETING = 'other'\n")


def _lose(code: Path, job: str) -> None:
    _open(code / f"streaming_jobs/{job}/job.py").unlink()


def _add(code: Path, job: str) -> None:
    _open(code / f"streaming_jobs/{job}/extra.py").write_text("")


def _forge(code: Path, job: str) -> None:
    path = _open(code.parent / MANIFEST)
    values = json.loads(path.read_text())
    values["files"][f"streaming_jobs/{job}/job.py"] = "0" * 64
    path.write_text(json.dumps(values))


def _truncate(code: Path, job: str) -> None:
    _ = job
    path = _open(code.parent / MANIFEST)
    path.write_text(path.read_text()[:100])


def test_an_archive_that_nobody_touched_is_proven(settings: Settings, tree: Tree) -> None:
    manifest = frozen_by_hand(settings, tree)
    assert archive.verify(settings, manifest.release) == manifest


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_change, r"job\.py was changed after it was frozen"),
        (_lose, r"job\.py is missing from the archive"),
        (_add, r"extra\.py was not frozen with the release"),
        (_forge, r"release\.json: its list of files is not the one that was frozen"),
        (_truncate, r"release\.json is not a manifest"),
    ],
)
def test_a_damaged_archive_is_refused_by_the_file(settings: Settings, tree: Tree, damage: Damage, says: str) -> None:
    manifest = frozen_by_hand(settings, tree)
    damage(settings.archive(manifest.release) / CODE, tree.job)
    with pytest.raises(ArchiveError, match=says):
        archive.verify(settings, manifest.release)


def test_an_archive_that_is_not_there_is_named(settings: Settings) -> None:
    with pytest.raises(ArchiveError, match=r"nobody/v7/release\.json does not exist"):
        archive.verify(settings, ReleaseId("nobody", 7))


def test_the_archive_holds_code_and_locks_and_neither_tests_nor_caches(tree: Tree) -> None:
    for left_out in ("ingest/tests/test_x.py", "ingest/__pycache__/x.py", "ingest/.hidden/x.py", "ingest/notes.md"):
        path = tree.root / left_out
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    names = set(code_files(tree.root))
    assert {LOCK, "ingest/topics.py", f"streaming_jobs/{tree.job}/job.py", "platform_core/names.py"} <= names
    assert not {
        name for name in names if "tests" in name or "hidden" in name or "__pycache__" in name or "notes" in name
    }


def test_an_archive_runs_its_own_code_after_the_tree_has_changed(settings: Settings, tree: Tree) -> None:
    manifest = frozen_by_hand(settings, tree)
    environment_kept(settings, manifest.requirements_sha256)
    tree.edit('GREETING = "first"', 'GREETING = "second"')
    argv, env = archive.command_for(settings, manifest.release)
    assert argv[1:] == ["-m", "platform_core.stream.driver", str(manifest.release)]
    shown = f"import platform_core, streaming_jobs.{tree.job}.job as j; print(j.GREETING, platform_core.__file__)"
    ran = subprocess.run([argv[0], "-c", shown], env=env, cwd=settings.home, capture_output=True, text=True, check=True)
    greeting, place = ran.stdout.split()
    assert greeting == "first"
    assert Path(place).is_relative_to(settings.archive(manifest.release))
    archive.verify(settings, manifest.release)  # running it left nothing in it


def test_a_release_of_the_running_lock_runs_in_the_running_environment(
    settings: Settings, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = frozen_by_hand(settings, tree)
    (tmp_path / environment.STAMP).write_text(manifest.requirements_sha256)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert archive.python_for(settings, manifest) == tmp_path / "bin" / "python"


def test_a_release_of_another_lock_runs_in_the_environment_kept_for_it(settings: Settings, tree: Tree) -> None:
    manifest = frozen_by_hand(settings, tree)
    place = environment_kept(settings, manifest.requirements_sha256)
    assert archive.python_for(settings, manifest) == place / "bin" / "python"


def test_a_half_made_environment_does_not_count(
    settings: Settings, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.root / LOCK).write_text(f"half-made=={tree.job}\n")
    manifest = frozen_by_hand(settings, tree)
    place = environment_kept(settings, manifest.requirements_sha256)
    (place / environment.STAMP).unlink()
    monkeypatch.setattr(environment, "_uv", lambda: "false")
    with pytest.raises(SetupError, match=r"`false venv --python` .* ended with status 1"):
        archive.python_for(settings, manifest)
