"""Where settings come from, what is said of a wrong one, and that they reach other processes whole."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from platform_core.errors import SettingsError
from platform_core.release.contents import copy
from platform_core.settings import NOT_IN_PROFILES, ROOT, Kafka, Section, Settings, load
from platform_core.streaming.source.kafka_source import connection

LOCAL = ROOT / "infra" / "profiles" / "local.toml"


def sections() -> Iterator[tuple[str, type[Section]]]:
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield name, field.annotation


def other(value: Any) -> Any:
    """Of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value / 2
        case str():
            return f"other {value}"
        case dict():
            return {"a.b": 'c "quoted"', "d": "é"}
        case _:
            raise AssertionError(value)


def all_other() -> Settings:
    """Every field of every section differs from its default and from the profile."""
    known = load(environment={"WEIR_HOME": "/of/weir"})
    changed = {
        name: kind.model_validate({field: other(value) for field, value in getattr(known, name)})
        for name, kind in sections()
    }
    return known.model_copy(update={**changed, "warehouse": "/elsewhere", "checkpoints": "/there"})


def test_settings_reach_another_process_whole() -> None:
    sent = all_other()
    received = load(environment=sent.child_environment())
    assert received.model_copy(update={"profile": sent.profile}) == sent


def test_they_reach_its_children_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = all_other()
    for name, text in sent.child_environment().items():
        monkeypatch.setenv(name, text)
    again = load(environment=load().child_environment())
    assert again.model_copy(update={"profile": sent.profile}) == sent


_PLATFORM = """
import subprocess, sys
from pathlib import Path
from platform_core.release.archive import environment_for
from platform_core.settings import ROOT, load
environment = environment_for(load(), ROOT, Path(sys.executable))  # as the supervisor gives it to a driver
subprocess.run([sys.executable, "-P", "-c", sys.argv[1]], env=environment, cwd="/", check=True)
"""
_DRIVER = "from platform_core.settings import load; print(load().alerts.model_dump_json())"


def test_a_section_that_is_added_to_the_model_is_found_in_a_driver(tmp_path: Path) -> None:
    """By nothing but its class and its field."""
    copy(ROOT, tree := tmp_path / "tree")
    model = tree / "platform_core" / "settings.py"
    section = (
        "class Alerts(Section):\n    to: str = 'nobody'\n    after: float = 1.0\n    routes: dict[str, str] = {}\n\n\n"
    )
    text = model.read_text().replace(
        "class Settings(Section):\n", f"{section}class Settings(Section):\n    alerts: Alerts = Alerts()\n"
    )
    model.write_text(text)
    profile = tmp_path / "own.toml"
    profile.write_text('[alerts]\nto = "ann"\n[alerts.routes]\nstocks = "bob"\n')
    given = {"WEIR_PROFILE": str(profile), "WEIR_HOME": str(tmp_path), "WEIR_ALERTS__AFTER": "2.5"}
    environment = {**given, "PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin"}
    for more, routes in ({}, {"stocks": "bob"}), ({"WEIR_ALERTS__ROUTES": '{"clicks": "cyd"}'}, {"clicks": "cyd"}):
        ran = subprocess.run(
            [sys.executable, "-B", "-P", "-c", _PLATFORM, _DRIVER],
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(ran.stdout) == {"to": "ann", "after": 2.5, "routes": routes}


def test_maps_that_the_profile_has_stay_in_its_file(tmp_path: Path) -> None:
    profile = tmp_path / "own.toml"
    profile.write_text('[kafka.client]\n"sasl.password" = "secret"\n')
    settings = load(str(profile), {"WEIR_HOME": str(tmp_path)})
    sent = settings.child_environment()
    assert "secret" not in json.dumps(sent)
    assert load(environment=sent).kafka.client == {"sasl.password": "secret"}


def test_what_a_map_in_the_environment_says_reaches_children_and_no_release_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They take the text for the map itself, and refuse it."""
    monkeypatch.setenv("WEIR_KAFKA__CLIENT", '{"client.id": "me"}')
    settings = load()
    assert settings.kafka.client == {"client.id": "me"}
    sent = settings.child_environment()
    assert "WEIR_KAFKA__CLIENT" not in sent
    assert load(environment=sent).kafka.client == {"client.id": "me"}


def test_the_environment_of_a_child_can_still_be_overruled() -> None:
    sent = all_other().child_environment()
    assert load(environment={**sent, "WEIR_KAFKA__PORT": "1"}).kafka.port == 1
    assert load(environment={**sent, "WEIR_SPARK__CONF": "{}"}).spark.conf == {}


@pytest.mark.parametrize(
    ("text", "says", "remedy"),
    [
        (
            "[kafka]\nprot = 1",
            "there is no setting 'prot' in [kafka]. Did you mean 'port'?",
            "managed, port, bootstrap",
        ),
        ("[kafak]\nport = 1", "there is no setting 'kafak'. Did you mean 'kafka'?", "kafka, postgres, spark"),
        ("zzz = 1", "there is no setting 'zzz'.", "There can have home"),
        ('[kafka]\nport = "many"', "kafka.port: Input should be a valid integer", "Correct it there"),
    ],
)
def test_a_wrong_key_of_a_profile_names_those_that_there_are(tmp_path: Path, text: str, says: str, remedy: str) -> None:
    profile = tmp_path / "own.toml"
    profile.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(str(profile), {})
    assert says in caught.value.what
    assert str(profile) in caught.value.what
    assert remedy in caught.value.remedy


def test_a_wrong_key_of_the_environment_is_named_as_it_was_written() -> None:
    with pytest.raises(SettingsError, match=r"WEIR_KAFKA__PROT: there is no setting 'prot' in \[kafka\]"):
        load(environment={"WEIR_KAFKA__PROT": "1"})
    with pytest.raises(SettingsError, match="WEIR_KAFKA__CLIENT is no JSON"):
        load(environment={"WEIR_KAFKA__CLIENT": "a=b"})


def test_what_stands_in_a_map_is_not_told() -> None:
    with pytest.raises(SettingsError) as caught:
        load(environment={"WEIR_KAFKA__CLIENT": '{"sasl.password": ["secret"]}'})
    assert "kafka.client.sasl.password" in caught.value.what
    assert "secret" not in str(caught.value)


def test_options_of_sparks_source_are_written_as_kafka_spells_them() -> None:
    settings = load(environment={"WEIR_KAFKA__SPARK": '{"security.protocol": "SSL"}'})
    assert connection(settings)["kafka.security.protocol"] == "SSL"
    with pytest.raises(SettingsError, match=r"write 'security\.protocol' instead of 'kafka\.security\.protocol'"):
        load(environment={"WEIR_KAFKA__SPARK": '{"kafka.security.protocol": "SSL"}'})


def test_no_profile_of_the_repository_has_a_prefix_that_spark_would_see_twice() -> None:
    """Nor one in what is commented out."""
    lines = [line.lstrip("# ") for path in LOCAL.parent.glob("*.toml") for line in path.read_text().splitlines()]
    options = [line for line in lines if line.startswith('"')]
    assert [line for line in options if line.startswith('"kafka.')] == []
    assert '"security.protocol" = "SASL_SSL"' in options
    assert Kafka(spark={"security.protocol": "SASL_SSL"}).spark


def test_the_shared_profile_as_it_is_filled_in_gives_sparks_source_each_option_once(tmp_path: Path) -> None:
    lines = (LOCAL.parent / "shared.toml").read_text().splitlines()
    begin = lines.index(next(line for line in lines if line.startswith("# [kafka.spark]")))
    filled = [line.removeprefix("# ") if begin <= place <= begin + 1 else line for place, line in enumerate(lines)]
    (tmp_path / "own.toml").write_text("\n".join(filled))
    options = connection(load(str(tmp_path / "own.toml"), {"WEIR_HOME": str(tmp_path)}))
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert [name for name in options if not name.startswith("kafka.") or name.startswith("kafka.kafka.")] == []


def local_profile() -> str:
    """`local.toml`, as the settings describe themselves."""
    lines = [*LOCAL.read_text().partition("\n\n")[0].splitlines(), ""]
    for name, field in Settings.model_fields.items():
        if name not in NOT_IN_PROFILES and name not in dict(sections()):
            lines.append(_line(name, "/srv/weir" if name == "home" else field.default, field.description))
    for name, kind in sections():
        lines += ["", f"[{name}]"]
        lines += [
            _line(key, one.get_default(call_default_factory=True), one.description)
            for key, one in kind.model_fields.items()
        ]
    return "\n".join(lines) + "\n"


def _line(name: str, default: Any, description: str | None) -> str:
    assert description, f"setting {name} is not described"
    return f"# {name} = {json.dumps(default)}  # {description}"


def test_the_local_profile_shows_every_setting_with_its_default() -> None:
    assert LOCAL.read_text() == local_profile()


def test_what_the_local_profile_shows_can_be_uncommented_and_changes_nothing(tmp_path: Path) -> None:
    lines = LOCAL.read_text().splitlines()
    shown = [
        line.removeprefix("# ") for line in lines if line.startswith("[") or line.partition(" = ")[0].count(" ") == 1
    ]
    profile = tmp_path / "all.toml"
    profile.write_text("\n".join(shown))
    assert set(tomllib.loads(profile.read_text())) == set(Settings.model_fields) - set(NOT_IN_PROFILES)
    everything = load(str(profile), {})
    assert everything.home == Path("/srv/weir")
    usual = load(environment={"WEIR_HOME": "/srv/weir"})
    assert everything.model_copy(update={"profile": usual.profile}) == usual


def test_all_state_is_in_the_checkout_whatever_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(environment={}).home == ROOT / ".weir"
    assert load(environment={"WEIR_HOME": "here"}).home == tmp_path / "here"


def test_an_archive_that_is_run_by_hand_finds_the_home_that_it_was_frozen_in(tmp_path: Path) -> None:
    version = tmp_path / "home" / "releases" / "word_count" / "v2.1"
    copy(ROOT, version / "code")
    (version / "release.json").write_text("{}")
    environment = {"PYTHONPATH": str(version / "code"), "WEIR_NEW__FIELD": "1", "PATH": "/usr/bin:/bin"}
    code = "from platform_core.settings import load, FROZEN; print(FROZEN, load().home)"
    ran = subprocess.run(
        [sys.executable, "-B", "-P", "-c", code], env=environment, cwd="/", capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", str(tmp_path / "home")]
