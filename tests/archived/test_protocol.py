"""Every program of the protocol, in an archive of each version: what it is given, and what it answers."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from platform_core.archived import protocol
from platform_core.archived.protocol import PROTOCOL, VERBS, Verb, command, file_of, module_of
from platform_core.archived.rows import ROWS_VERSION
from platform_core.errors import ArchiveError
from platform_core.release import archive
from platform_core.services import ports
from platform_core.settings import Settings
from tests.archived.conftest import Frozen
from tests.archived.frozen import unpacked

pytestmark = pytest.mark.ordinary  # each starts a process of an archive
JOB = "stock_stats"


def entered(frozen: Frozen, verb: Verb, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(archive_python(frozen), frozen.protocol, verb, *arguments),
        env={**frozen.environment, **more},
        cwd=frozen.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def archive_python(frozen: Frozen) -> str:
    return frozen.environment["PYSPARK_PYTHON"]


@pytest.mark.parametrize("verb", VERBS)
def test_an_archive_has_the_program_under_the_name_of_its_version(frozen: Frozen, verb: Verb) -> None:
    program = frozen.code / file_of(frozen.protocol, verb)
    assert program.is_file()
    assert 'if __name__ == "__main__":' in program.read_text()


def test_describe_tells_what_the_archive_declares(frozen: Frozen) -> None:
    done = entered(frozen, "describe", JOB)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["declared"]["name"] == JOB
    assert len(told["fingerprint"]) == 64
    versions = {name: told[name] for name in told if name not in ("declared", "fingerprint")}
    assert versions == ({"protocol": PROTOCOL, "rows_version": ROWS_VERSION} if frozen.protocol else {})


def test_describe_says_in_its_last_line_why_it_cannot(frozen: Frozen) -> None:
    done = entered(frozen, "describe", "nobody")
    assert done.returncode != 0
    assert "There is no job 'nobody'" in done.stderr.splitlines()[-1]


def test_run_ends_with_a_permanent_errors_own_code(frozen: Frozen) -> None:
    done = entered(frozen, "run", "nonsense")
    assert done.returncode == 64
    (line,) = done.stderr.splitlines() + done.stdout.splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"]) == ("driver ended", "error")
    assert said["error"] == {
        "error": "UsageError",
        "what": "'nonsense' is not a release.",
        "remedy": "Name a job and a version, as in stock_stats@v1.",
    }


def test_run_ends_with_75_where_another_try_may_succeed(frozen: Frozen, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("x")
    nowhere = {
        "WEIR_POSTGRES__PASSWORD_FILE": str(tmp_path / "password"),
        "WEIR_POSTGRES__PORT": str(ports.free(1)[0]),
    }
    done = entered(frozen, "run", f"{JOB}@v1", **nowhere)
    assert done.returncode == 75, done.stderr


@pytest.mark.stack
@pytest.mark.long
def test_trial_ends_when_whoever_asks_has_gone(frozen: Frozen, tmp_path: Path) -> None:
    done = entered(frozen, "trial", JOB, str(tmp_path))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]
    assert list(tmp_path.iterdir()) == []


def test_a_request_that_cannot_be_read_explains_nothing(frozen: Frozen, tmp_path: Path) -> None:
    done = entered(frozen, "explain", str(tmp_path / "none"))
    assert (done.returncode == 0, done.stdout) == (False, "")
    assert "none" in done.stderr


def test_an_archive_without_a_version_is_entered_by_the_names_of_its_time(settings: Settings) -> None:
    manifest = unpacked(settings)
    assert manifest.protocol == 0
    argv, environment = archive.command_for(settings, manifest.release)
    assert argv[1:] == ["-P", "-m", "platform_core.stream.driver", "stock_stats@v1"]
    assert environment["PYTHONPATH"] == str(archive.code_of(settings, manifest))


def test_an_archive_of_a_newer_protocol_is_refused_and_not_guessed_at(settings: Settings) -> None:
    newer = replace(unpacked(settings), protocol=PROTOCOL + 1)
    with pytest.raises(ArchiveError, match=f"version {PROTOCOL + 1} of the protocol; this platform knows {PROTOCOL}"):
        archive.entered(Path("python"), newer, "run")


def test_a_program_that_an_archive_does_not_have_is_named(settings: Settings) -> None:
    manifest = unpacked(settings)
    without = {name: sha for name, sha in manifest.files.items() if name != file_of(0, "trial")}
    with pytest.raises(ArchiveError, match=r"no program for 'trial', platform_core/release/plan/batch\.py"):
        archive.entered(Path("python"), replace(manifest, files=without), "trial")


def test_every_version_has_every_program() -> None:
    assert {module_of(PROTOCOL, verb) for verb in VERBS} == {f"platform_core.archived.{verb}" for verb in VERBS}
    assert all(module_of(version, verb) for version in range(PROTOCOL) for verb in protocol.VERBS)
