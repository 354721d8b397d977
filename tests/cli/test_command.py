"""How the command speaks and ends, before any service runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from platform_core.settings import ROOT
from tests.cli.conftest import Weir

PLATFORM = ("up", "down", "doctor", "demo")
JOBS = ("start", "stop", "pause", "restart", "run", "status", "logs")
COMMANDS = (*PLATFORM, *JOBS, "sql", "get", "generate", "check", "completion")


def test_help_lists_every_command_and_how_to_begin(weir: Weir) -> None:
    ran = weir("--help")
    assert ran.code == 0
    assert [name for name in COMMANDS if f" {name} " not in ran.out] == []
    assert "A first session" in ran.out


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "generate"])
def test_the_help_of_each_command_teaches_by_example(weir: Weir, command: str) -> None:
    ran = weir(command, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"weir {command}" in ran.out.partition("Example")[2]


def test_help_tells_what_an_argument_is(weir: Weir) -> None:
    assert "Its key, or the first columns of it." in weir("get", "--help").out


@pytest.mark.parametrize("words", [["nonsense"], ["sql"], ["get", "--nope"], ["start"], ["start", "a", "--all"]])
def test_a_wrong_line_ends_with_64_and_no_traceback(weir: Weir, words: list[str]) -> None:
    ran = weir(*words)
    assert (ran.code, ran.out) == (64, "")
    assert "rror" in ran.err
    assert "Traceback" not in ran.err


def test_a_wrong_command_is_answered_once_with_those_that_are_near(weir: Weir) -> None:
    ran = weir("statsu")
    assert ran.err.lower().count("did you mean") == 1
    assert "'status'" in ran.err


def test_an_error_says_what_and_what_to_do(weir: Weir) -> None:
    ran = weir("sql", "select 1", WEIR_HOME="/nowhere")
    assert ran.code == 78
    assert ran.err == (
        "error: postgres.password_file: no file /nowhere/postgres.password.\n"
        "Run `weir up` first, or name the file in the profile or in WEIR_POSTGRES__PASSWORD_FILE.\n"
    )


def test_an_error_is_json_where_the_result_is(weir: Weir) -> None:
    ran = weir("--home", "/nowhere", "status", "--json")
    assert (ran.code, ran.out) == (78, "")
    told = json.loads(ran.err)
    assert (told["error"], told["exit"]) == ("SettingsError", 78)


def test_the_traceback_is_there_for_who_asks(weir: Weir) -> None:
    assert "Traceback" in weir("--home", "/nowhere", "status", "--debug").err


def test_a_profile_that_is_not_there_is_named(weir: Weir) -> None:
    ran = weir("--profile", "mars", "status")
    assert ran.code == 78
    assert "There is no profile 'mars'; looked at mars, " in ran.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(weir: Weir, shell: str) -> None:
    ran = weir("completion", shell)
    assert ran.code == 0
    assert "_WEIR_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("start stock", ["stock_stats", "stocks_raw"]),
        ("run stock_stats@", ["stock_stats@v1", "stock_stats@v2"]),
        ("retire stock_s", ["stock_stats@v1", "stock_stats@v2"]),
        ("stop stock_stats@", ["stock_stats@v1", "stock_stats@v2"]),
        ("get user", ["user_activity"]),
        ("logs kaf", ["kafka"]),
        ("generate st", ["stocks"]),
        ("--profile lo", ["local"]),
    ],
)
def test_what_a_line_may_go_on_with_is_completed(weir: Weir, tmp_path: Path, line: str, offered: list[str]) -> None:
    for number in (1, 2):
        (tmp_path / "releases" / "stock_stats" / f"v{number}").mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "kafka.log").touch()
    words = f"weir {line}"
    told = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "WEIR_HOME": str(tmp_path)}
    assert weir(_WEIR_COMPLETE="complete_bash", **told).out.split() == offered


def test_generate_passes_on_what_it_is_told(weir: Weir) -> None:
    ran = weir("generate", "stocks", "--help")
    assert ran.code == 0
    assert "--malformed" in ran.out


@pytest.mark.ordinary
def test_a_command_that_reads_imports_nothing_slow() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "platform_core.cli", "--home", "/nowhere", "sql", "select 1"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}
    assert "platform_core.read.query" in loaded
    assert not {"pyspark", "dagster", "great_expectations", "confluent_kafka", "pandas", "pyarrow", "rich"} & loaded
