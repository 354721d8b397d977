"""An archive is what was frozen, or it does not run."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from platform_core.errors import ArchiveError, SetupError
from platform_core.names import ReleaseId
from platform_core.release import archive, environment
from platform_core.release.contents import JARS_LOCK, LOCK, code_files
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
    damage(settings.storage.archive(manifest.release) / CODE, tree.job)
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
    environment_kept(settings, manifest)
    tree.edit('GREETING = "first"', 'GREETING = "second"')
    argv, env = archive.command_for(settings, manifest.release)
    assert argv[1:] == ["-P", "-m", "platform_core.archived.run", str(manifest.release)]
    shown = f"import platform_core, streaming_jobs.{tree.job}.job as j; print(j.GREETING, platform_core.__file__)"
    ran = subprocess.run([argv[0], "-c", shown], env=env, cwd=settings.home, capture_output=True, text=True, check=True)
    greeting, place = ran.stdout.split()
    assert greeting == "first"
    assert Path(place).is_relative_to(settings.storage.archive(manifest.release))
    archive.verify(settings, manifest.release)  # running it left nothing in it


def test_an_archive_starts_under_a_platform_with_newer_settings(settings: Settings, tree: Tree) -> None:
    manifest = frozen_by_hand(settings, tree)
    environment_kept(settings, manifest)
    profile = tree.root / "newer.toml"
    profile.write_text("[kafka]\nnever_heard_of = 1\nclient = {linger = '5'}\n\n[another]\nsection = true\n")
    kafka = settings.kafka.model_copy(update={"client": {"linger": "5"}})
    newer = settings.model_copy(update={"profile": str(profile), "kafka": kafka})
    argv, env = archive.command_for(newer, manifest.release)
    shown = "from platform_core.settings import load; s = load(); print(s.kafka.client, s.kafka.port)"
    env |= {"WEIR_KAFKA__ALSO_NEW": "1"}
    ran = subprocess.run([argv[0], "-c", shown], env=env, cwd=settings.home, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{{'linger': '5'}} {settings.kafka.port}\n"


def test_a_release_of_the_running_lock_runs_in_the_running_environment(
    settings: Settings, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = frozen_by_hand(settings, tree)
    (tmp_path / environment.STAMP).write_text(manifest.requirements_sha256)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert archive.python_for(settings, manifest) == tmp_path / "bin" / "python"


def test_a_release_of_another_lock_runs_in_the_environment_kept_for_it(settings: Settings, tree: Tree) -> None:
    manifest = frozen_by_hand(settings, tree)
    place = environment_kept(settings, manifest)
    assert archive.python_for(settings, manifest) == place / "bin" / "python"


def test_the_running_environment_with_other_jars_does_not_count(
    settings: Settings, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.root / JARS_LOCK).parent.mkdir(parents=True)
    (tree.root / JARS_LOCK).write_text(json.dumps([{"use": "spark", "file": f"{tree.job}-1.0.jar"}]))
    manifest = frozen_by_hand(settings, tree)
    (tmp_path / environment.STAMP).write_text(manifest.requirements_sha256)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    built: list[Path] = []
    monkeypatch.setattr(environment, "_build", lambda place, *_: built.append(place))  # pyright: ignore
    place = archive.python_for(settings, manifest).parents[1]
    assert built == [place]
    (tmp_path / "weir-jars" / "spark").mkdir(parents=True)
    (tmp_path / "weir-jars" / "spark" / f"{tree.job}-1.0.jar").touch()
    assert archive.python_for(settings, manifest) == tmp_path / "bin" / "python"


@pytest.mark.stack
def test_an_environment_is_built_from_the_archived_lock_once(settings: Settings, tree: Tree, tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, tree.job)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = f"--no-index\n--find-links {tmp_path}\n{tree.job}==1.0 --hash=sha256:{digest}\n"
    (tree.root / LOCK).write_text(lock)
    manifest = frozen_by_hand(settings, tree)
    python = archive.python_for(settings, manifest)
    shown = subprocess.run([python, "-c", f"import {tree.job} as m; print(m.SAYS)"], capture_output=True, text=True)
    assert shown.stdout == "locked\n"
    wheel.unlink()
    assert archive.python_for(settings, manifest) == python


@pytest.mark.stack
def test_a_lock_that_cannot_be_installed_leaves_nothing_that_counts(settings: Settings, tree: Tree) -> None:
    (tree.root / LOCK).write_text(f"--no-index\n{tree.job}==1.0 --hash=sha256:{'0' * 64}\n")
    manifest = frozen_by_hand(settings, tree)
    with pytest.raises(SetupError, match=r"`-m pip install` ended with status 1\. Its output is in "):
        archive.python_for(settings, manifest)
    place = settings.storage.environments / archive.locks_of(settings, manifest).name
    assert not (place / environment.STAMP).exists()


def _wheel(folder: Path, name: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", "SAYS = 'locked'\n")
        file.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path
