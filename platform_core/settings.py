"""The only reader of the environment and of profile files.

A profile is `infra/profiles/<name>.toml`; WEIR_PROFILE names it (or gives a path), WEIR_HOME says where all state
lives, and WEIR_<SECTION>__<FIELD> sets one field, as in WEIR_KAFKA__PORT=29092; maps and lists in JSON. The environment
wins over the profile, the profile over the defaults below. WEIR_SETTINGS is how a process hands its children the maps
and lists that the profile does not have; releases frozen before there was one ignore it.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from platform_core.errors import SettingsError
from platform_core.storage import Storage
from platform_core.wrong_settings import explained, parsed

ROOT = Path(__file__).resolve().parent.parent  # the tree that this code stands in: a working tree or an archive
FROZEN = (ROOT.parent / "release.json").is_file()
_HOME = ROOT.parents[3] if FROZEN else ROOT / ".weir"  # an archive stands in <home>/releases/<job>/<version>/code
_WHOLE = "WEIR_SETTINGS"
NOT_IN_PROFILES = ("profile", "root")
_BUNDLED_JAVA = Path(sys.prefix) / "weir-java"  # set-up installs it where there is no Java that fits


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kafka(Section):
    managed: bool = Field(default=True, description="start an own broker; false: use the one at `bootstrap`")
    port: int = Field(default=19092, description="the own broker's port; its controller listens on the next one")
    bootstrap: str = Field(default="", description="host:port of the brokers; empty: the own broker")
    heap: str = Field(default="512m", description="the own broker's heap")
    client: dict[str, str] = Field(
        default_factory=dict, description='librdkafka settings of every client, as in { "security.protocol" = "SSL" }'
    )
    spark: dict[str, str] = Field(
        default_factory=dict, description="the same for Spark's source, as Kafka's Java client spells them"
    )

    @field_validator("spark")
    @classmethod
    def _as_java_spells_them(cls, options: dict[str, str]) -> dict[str, str]:
        """Spark wants `kafka.` in front of each; a second one would make it an option that nobody knows."""
        for name in options:
            if name.startswith("kafka."):
                plain = name.removeprefix("kafka.")
                raise ValueError(f"write {plain!r} instead of {name!r}, weir puts `kafka.` in front of it for Spark")
        return options

    @property
    def servers(self) -> str:
        return self.bootstrap or f"127.0.0.1:{self.port}"


class Postgres(Section):
    managed: bool = Field(default=True, description="start an own server; false: use the one at host and port")
    host: str = Field(default="127.0.0.1", description="where the server is")
    port: int = Field(default=19432, description="its port, the own server's too")
    user: str = Field(default="weir", description="owns the databases")
    password_file: str = Field(default="", description="a file that holds the password; empty: the own server's")
    database: str = Field(default="weir", description="of the control store; Dagster's is named dagster")


class Spark(Section):
    master: str = Field(
        default="local[2]", description="local[N] for N processors of this machine, or spark://host:port"
    )
    driver_memory: str = Field(default="1g", description="the heap of each driver's JVM")
    java_options: str = Field(default="", description="more options of each driver's JVM, after the platform's own")
    shuffle_partitions: int = Field(
        default=2, description="partitions of a new release's state; fixed by its first batch"
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Spark settings that win over the platform's")


class Dagster(Section):
    managed: bool = Field(default=True, description="start Dagster's web page and daemon; false: do without")
    port: int = Field(default=19300, description="of the web page")


class Supervision(Section):
    lease_seconds: float = Field(
        default=15.0, description="how long a driver may be silent before another may take over"
    )
    poll_seconds: float = Field(default=1.0, description="how often the supervisor looks")
    give_up_after: int = Field(default=5, description="failures in a row after which a driver stays stopped")
    backoff_seconds: float = Field(default=2.0, description="the first wait before a restart; doubles each time")
    backoff_limit_seconds: float = Field(default=60.0, description="the longest wait before a restart")


class BatchSizes(Section):
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


class ObjectStore(Section):
    options: dict[str, str] = Field(
        default_factory=dict,
        description="of delta-rs, for a warehouse that is a URI; Spark's own stand in spark.conf",
    )


class Settings(Section):
    profile: str = Field(default="local", description="a name in infra/profiles, or a path")
    home: Path = Field(description="where all state lives; unless set, .weir in the checkout")
    root: Path = Field(ROOT, description="the tree whose jobs are declared")
    warehouse: str = Field(default="", description="path or URI of the tables; empty: under home")
    checkpoints: str = Field(default="", description="path or URI of the checkpoints; empty: under home")
    kafka: Kafka = Field(default_factory=lambda: Kafka())
    postgres: Postgres = Field(default_factory=lambda: Postgres())
    spark: Spark = Field(default_factory=lambda: Spark())
    dagster: Dagster = Field(default_factory=lambda: Dagster())
    supervision: Supervision = Field(default_factory=lambda: Supervision())
    batches: BatchSizes = Field(default_factory=lambda: BatchSizes())
    moves: Moves = Field(default_factory=lambda: Moves())
    object_store: ObjectStore = Field(default_factory=lambda: ObjectStore())

    @property
    def storage(self) -> Storage:
        return Storage(self.home, self.warehouse, self.checkpoints, self.object_store.options)

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
        env = {name: text for name, text in os.environ.items() if name not in ("PYTHONSAFEPATH", _WHOLE)}
        given, apart = _profile(self.profile), dict[str, dict[str, Any]]()
        for section, name, value in self._fields():
            variable = f"WEIR_{section.upper()}__{name.upper()}"
            env.pop(variable, None)  # a map stands there as JSON, which releases of before cannot read
            if isinstance(value, str | int | float):
                env[variable] = str(value)
            elif value != given.get(section, {}).get(name, _default(section, name)):
                apart.setdefault(section, {})[name] = value
        env |= {_WHOLE: json.dumps(apart)} if apart else {}
        env["WEIR_PROFILE"] = str(_place_of(self.profile))  # a frozen release's copy of it may be years old
        env["WEIR_HOME"] = str(self.home)
        env["PYSPARK_PYTHON"] = env["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if _BUNDLED_JAVA.is_dir():
            env["JAVA_HOME"] = str(_BUNDLED_JAVA)
        for name in ("warehouse", "checkpoints"):
            if getattr(self, name):
                env[f"WEIR_{name.upper()}"] = getattr(self, name)
        return env

    def _fields(self) -> Iterator[tuple[str, str, Any]]:
        """Of every section: its name, the field's, and the value as JSON has it."""
        for section, values in self.model_dump(mode="json").items():
            if _section(section) is not None:
                yield from ((section, name, value) for name, value in values.items())


def _section(name: str) -> type[Section] | None:
    field = Settings.model_fields.get(name)
    kind = field.annotation if field else None
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _default(section: str, name: str) -> Any:
    kind = _section(section)
    return kind.model_fields[name].get_default(call_default_factory=True) if kind else None


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
    values.setdefault("home", env.get("WEIR_HOME", str(_HOME)))
    values["profile"] = name
    try:
        settings = Settings.model_validate(_known(values) if FROZEN else values)
    except ValidationError as error:
        raise _refused(name, error, env) from error
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
        kind = _section(name)
        if kind is not None:
            known[name] = {field: part for field, part in value.items() if field in kind.model_fields}
        elif name in Settings.model_fields:
            known[name] = value
    return known


def _overlay(values: dict[str, Any], env: Mapping[str, str]) -> None:
    for section, parts in json.loads(env.get(_WHOLE, "{}")).items():
        values.setdefault(section, {}).update(parts)
    for key, text in env.items():
        if not key.startswith("WEIR_") or "__" not in key:
            continue
        section, _, name = key.removeprefix("WEIR_").lower().partition("__")
        values.setdefault(section, {})[name] = parsed(key, text) if _is_collection(section, name) else text
    for key in ("home", "warehouse", "checkpoints"):
        if f"WEIR_{key.upper()}" in env:
            values[key] = env[f"WEIR_{key.upper()}"]


def _is_collection(section: str, name: str) -> bool:
    kind = _section(section)
    return kind is not None and name in kind.model_fields and get_origin(kind.model_fields[name].annotation) is not None


def _refused(profile: str, error: ValidationError, env: Mapping[str, str]) -> SettingsError:
    sections = {name: kind for name in Settings.model_fields if (kind := _section(name)) is not None}
    top = [name for name in Settings.model_fields if name not in NOT_IN_PROFILES]
    return explained(error, sections, top, str(_place_of(profile)), env)
