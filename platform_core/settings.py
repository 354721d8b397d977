"""The only reader of the environment and of profile files.

A profile is `infra/profiles/<name>.toml`; WEIR_PROFILE names it (or gives a path), WEIR_HOME says where all state
lives, and WEIR_<SECTION>__<FIELD> sets one field, as in WEIR_KAFKA__PORT=29092. The environment wins over the profile,
the profile over the defaults below.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from platform_core.errors import SettingsError
from platform_core.names import ReleaseId

ROOT = Path(__file__).resolve().parent.parent  # the tree that this code stands in: a working tree or an archive
FROZEN = (ROOT.parent / "release.json").is_file()
_BUNDLED_JAVA = Path(sys.prefix) / "weir-java"  # set-up installs it where there is no Java that fits


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kafka(Section):
    managed: bool = Field(default=True, description="start an own broker; false: use the one at `bootstrap`")
    port: int = Field(default=19092, description="the own broker's port; its controller listens on the next one")
    bootstrap: str = Field(default="", description="host:port of the brokers; empty: the own broker")
    heap: str = Field(default="512m", description="the own broker's heap")
    client: dict[str, str] = Field(default_factory=dict, description="librdkafka settings of every client")
    spark: dict[str, str] = Field(default_factory=dict, description="kafka.* options of Spark's source, if they differ")

    @property
    def servers(self) -> str:
        return self.bootstrap or f"127.0.0.1:{self.port}"


class Postgres(Section):
    managed: bool = Field(default=True, description="start an own server; false: use the one at host and port")
    host: str = "127.0.0.1"
    port: int = 19432
    user: str = "weir"
    password_file: str = Field(default="", description="a file that holds the password; empty: the own server's")
    database: str = "weir"


class Spark(Section):
    master: str = "local[2]"
    driver_memory: str = "1g"
    shuffle_partitions: int = 2
    conf: dict[str, str] = Field(default_factory=dict, description="Spark settings that win over the platform's")


class Dagster(Section):
    managed: bool = True
    port: int = 19300


class Supervision(Section):
    lease_seconds: float = Field(
        default=15.0, description="how long a driver may be silent before another may take over"
    )
    poll_seconds: float = Field(default=1.0, description="how often the supervisor looks")
    give_up_after: int = Field(default=5, description="failures in a row after which a driver stays stopped")
    backoff_seconds: float = Field(default=2.0, description="the first wait before a restart; doubles each time")
    backoff_limit_seconds: float = 60.0


class Batches(Section):
    max_records: int = Field(default=500_000, description="the most records that one batch takes from the event topics")
    max_in_memory: int = Field(default=200_000, description="the same, of a job whose state is in memory")


class Moves(Section):
    """How a release that is not live is brought to where the live one is."""

    follow_seconds: float = Field(default=15.0, description="how often a candidate or a standby steps after the live")
    replay_records: int = Field(default=400_000, description="the most records that one step of a replay takes")
    replay_share: float = Field(
        default=0.7, gt=0, le=1, description="of the time a replay works; the rest is left to the live release"
    )
    readers_seconds: float = Field(
        default=60.0, ge=0, description="how long a reader that resolved an alias right before a cutover may still read"
    )


class Settings(Section):
    profile: str = "local"
    home: Path = Field(description="where all state lives")
    root: Path = Field(ROOT, description="the tree whose jobs are declared")
    warehouse: str = Field(default="", description="path or URI of the tables; empty: under home")
    checkpoints: str = Field(default="", description="path or URI of the checkpoints; empty: under home")
    kafka: Kafka = Field(default_factory=lambda: Kafka())
    postgres: Postgres = Field(default_factory=lambda: Postgres())
    spark: Spark = Field(default_factory=lambda: Spark())
    dagster: Dagster = Field(default_factory=lambda: Dagster())
    supervision: Supervision = Field(default_factory=lambda: Supervision())
    batches: Batches = Field(default_factory=lambda: Batches())
    moves: Moves = Field(default_factory=lambda: Moves())

    def table_uri(self, release: ReleaseId) -> str:
        return f"{self.warehouse or self.home / 'warehouse'}/{release.path}"

    def rejects_uri(self, job: str) -> str:
        return f"{self.warehouse or self.home / 'warehouse'}/{job}/rejects"

    def daily_uri(self, table: str) -> str:
        return f"{self.warehouse or self.home / 'warehouse'}/{table}"

    @property
    def alias_log(self) -> str:
        return f"{self.warehouse or self.home / 'warehouse'}/aliases.jsonl"

    def checkpoint(self, release: ReleaseId) -> str:
        return f"{self.checkpoints or self.home / 'checkpoints'}/{release.path}"

    def archive(self, release: ReleaseId, revision: int = 0) -> Path:
        """`v2` is what was frozen first, `v2.1` its first revision."""
        return self.home / "releases" / (f"{release.path}.{revision}" if revision else release.path)

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def jars(self) -> Path:
        """Installed software, not state: `spark/` and `kafka/` stand beside the interpreter that runs this."""
        return Path(sys.prefix) / "weir-jars"

    @property
    def classes(self) -> Path:
        """Beside them: the classes that every Spark loads; made by set-up, and done without where it is not there."""
        return Path(sys.prefix) / "weir-classes.jsa"

    def password(self) -> str:
        path = Path(self.postgres.password_file) if self.postgres.password_file else self.home / "postgres.password"
        if not path.is_file():
            raise SettingsError(
                f"postgres.password_file: no file {path}.",
                remedy="Run `weir up` first, or name the file in the profile or in WEIR_POSTGRES__PASSWORD_FILE.",
            )
        return path.read_text().strip()

    def child_environment(self) -> dict[str, str]:
        """The environment of a process that shall load these same settings, from any directory and any tree."""
        env = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
        services = (self.kafka, self.postgres, self.spark, self.dagster)
        for section in (*services, self.supervision, self.batches, self.moves):
            for name in type(section).model_fields:
                value = getattr(section, name)
                if isinstance(value, str | int | float):
                    env[f"WEIR_{type(section).__name__.upper()}__{name.upper()}"] = str(value)
        env["WEIR_PROFILE"] = str(_place_of(self.profile))  # a frozen release's copy of it may be years old
        env["WEIR_HOME"] = str(self.home)
        env["PYSPARK_PYTHON"] = env["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if _BUNDLED_JAVA.is_dir():
            env["JAVA_HOME"] = str(_BUNDLED_JAVA)
        for name in ("warehouse", "checkpoints"):
            if getattr(self, name):
                env[f"WEIR_{name.upper()}"] = getattr(self, name)
        return env


def java_places(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Where Spark and Kafka would find a Java, best first; last the one that set-up installs when there is no other."""
    env = os.environ if environment is None else environment
    if env.get("JAVA_HOME"):  # it hides the PATH, for Spark too
        folders = [Path(env["JAVA_HOME"]) / "bin"]
    else:
        folders = [Path(text) for text in env.get("PATH", "").split(os.pathsep) if text]
    return [*(folder / "java" for folder in folders), _BUNDLED_JAVA / "bin" / "java"]


def use_bundled_java() -> None:
    """Spark's launcher looks at JAVA_HOME and the PATH alone."""
    if _BUNDLED_JAVA.is_dir():
        os.environ["JAVA_HOME"] = str(_BUNDLED_JAVA)


def use_this_python() -> None:
    """For Spark's Python workers: left alone they take the PATH's first `python3`, which has none of our packages."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def load(profile: str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Reads the profile and the environment once; everything else is passed the result."""
    env = os.environ if environment is None else environment
    name = profile or env.get("WEIR_PROFILE", "local")
    values = _profile(name)
    _overlay(values, env)
    values.setdefault("home", env.get("WEIR_HOME", str(Path.cwd() / ".weir")))
    values["profile"] = name
    try:
        settings = Settings.model_validate(_known(values) if FROZEN else values)
    except ValidationError as error:
        raise _unreadable(name, error) from error
    return settings.model_copy(update={"home": settings.home.expanduser().resolve()})


def _profile(name: str) -> dict[str, Any]:
    place = _place_of(name)
    try:
        return tomllib.loads(place.read_text())
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{place}: {error}.", remedy="Correct the file.") from error


def _place_of(name: str) -> Path:
    places = [Path(name), ROOT / "infra" / "profiles" / f"{name}.toml"]
    for place in places:
        if place.suffix == ".toml" and place.is_file():
            return place.resolve()
    looked = ", ".join(str(place) for place in places)
    raise SettingsError(f"There is no profile {name!r}; looked at {looked}.", remedy="Set WEIR_PROFILE to one that is.")


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that this code has never heard of: a newer platform may start an old release."""
    known: dict[str, Any] = {}
    for name, value in values.items():
        kind = Settings.model_fields[name].annotation if name in Settings.model_fields else None
        if isinstance(kind, type) and issubclass(kind, Section):
            known[name] = {field: part for field, part in value.items() if field in kind.model_fields}
        elif kind is not None:
            known[name] = value
    return known


def _overlay(values: dict[str, Any], env: Mapping[str, str]) -> None:
    for key, text in env.items():
        if not key.startswith("WEIR_") or "__" not in key:
            continue
        section, _, name = key.removeprefix("WEIR_").lower().partition("__")
        values.setdefault(section, {})[name] = text
    for key in ("home", "warehouse", "checkpoints"):
        if f"WEIR_{key.upper()}" in env:
            values[key] = env[f"WEIR_{key.upper()}"]


def _unreadable(name: str, error: ValidationError) -> SettingsError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return SettingsError(
        f"{where}: {first['msg']}, got {first.get('input')!r}; searched WEIR_{where.upper().replace('.', '__')}, "
        f"profile {name!r}, the defaults in platform_core/settings.py.",
        remedy="Correct it in one of them.",
    )
