"""The jars of Spark and Kafka: fetched as the lock says, with the Ivy that pyspark brings, and proved by SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from platform_core.errors import SetupError, WeirError
from platform_core.services import java
from platform_core.settings import ROOT

LOCK = ROOT / "infra" / "locks" / "jars.lock.json"
CALLS = 3  # Ivy fetches one after the other: 93 small files want company
ATTEMPTS = 3

# The lock has every jar and its hash: poms and their checksums would be fetched for nothing (64 s instead of 9).
IVY_SETTINGS = """\
<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


@dataclass(frozen=True)
class Jar:
    coord: str
    file: str
    sha256: str
    size: int
    use: str  # the folder: spark or kafka

    def whole(self, folder: Path) -> bool:
        path = folder / self.use / self.file
        return path.is_file() and path.stat().st_size == self.size


def read_lock(path: Path = LOCK) -> list[Jar]:
    return [Jar(**entry) for entry in json.loads(path.read_text())]


def missing(jars: Iterable[Jar], folder: Path) -> list[Jar]:
    return [jar for jar in jars if not jar.whole(folder)]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def install(jars: list[Jar], folder: Path, show: Callable[[int, int], None], log: Path) -> int:
    """Makes `folder` hold exactly these; what an earlier attempt brought is kept. Returns how many were fetched."""
    wanted = to_fetch(jars, folder)
    for _ in range(ATTEMPTS if wanted else 0):
        _fetch(missing(wanted, folder), folder, show, log)
        if not missing(wanted, folder):
            break
    left = missing(wanted, folder)
    if left:
        raise SetupError(
            f"{len(left)} of {len(jars)} jars could not be fetched, the first is {left[0].coord}: {_cause(log)}.",
            remedy=f"Look at {log}, then run `make setup` again: it goes on where it stopped.",
        )
    _prune(jars, folder)
    shutil.rmtree(folder / ".fetch", ignore_errors=True)
    return len(wanted)


def to_fetch(jars: list[Jar], folder: Path) -> list[Jar]:
    """Those that are not there with the locked hash."""
    return [jar for jar in jars if not jar.whole(folder) or digest(folder / jar.use / jar.file) != jar.sha256]


def _fetch(jars: list[Jar], folder: Path, show: Callable[[int, int], None], log: Path) -> None:
    lots = [lot for use in ("spark", "kafka") for lot in _lots([jar for jar in jars if jar.use == use])]
    places = [folder / ".fetch" / f"{lot[0].use}-{number}" for number, lot in enumerate(lots)]
    with log.open("ab") as out:
        calls = [_call(lot, place, out.fileno()) for lot, place in zip(lots, places, strict=True)]
        while any(call.poll() is None for call in calls):
            show(_arrived(folder / ".fetch"), sum(jar.size for jar in jars))
            time.sleep(0.3)
    for lot, place in zip(lots, places, strict=True):
        for jar in lot:
            accept(jar, place, folder)


def _lots(jars: list[Jar]) -> list[list[Jar]]:
    ordered = sorted(jars, key=lambda jar: -jar.size)
    return [lot for lot in (ordered[number::CALLS] for number in range(CALLS)) if lot]


def _call(lot: list[Jar], place: Path, out: int) -> subprocess.Popen[bytes]:
    place.mkdir(parents=True, exist_ok=True)
    (place / "settings.xml").write_text(IVY_SETTINGS)
    (place / "ivy.xml").write_text(_module(lot))
    command = [java.find().command, "-Xmx128m", "-XX:+UseSerialGC", "-jar", _ivy()]
    command += ["-settings", place / "settings.xml", "-cache", place / "cache", "-ivy", place / "ivy.xml"]
    command += ["-retrieve", f"{place}/lib/[artifact]-[revision].[ext]"]
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def _module(lot: list[Jar]) -> str:
    line = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->default"/>'
    wanted = "\n".join(line.format(*jar.coord.split(":")) for jar in lot)
    return (
        '<ivy-module version="2.0"><info organisation="weir" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )


def _ivy() -> Path:
    found = importlib.util.find_spec("pyspark")
    for place in (found.submodule_search_locations or ()) if found else ():
        for path in Path(place, "jars").glob("ivy-*.jar"):
            return path
    raise SetupError("pyspark is not installed, or has no Ivy.", remedy="Run `make setup`.")


def _arrived(folder: Path) -> int:
    total = 0
    for path in folder.glob("*/cache/**/*.jar*"):
        try:
            total += path.stat().st_size
        except OSError:  # renamed while we looked
            continue
    return total


def accept(jar: Jar, place: Path, folder: Path) -> None:
    """Into its folder in one step, or not at all."""
    fetched = place / "lib" / jar.file
    if not fetched.is_file():
        return
    found = digest(fetched)
    if found != jar.sha256:
        shutil.rmtree(place)
        raise SetupError(
            f"{jar.coord} was refused: its SHA-256 is {found}, {LOCK.name} says {jar.sha256}.",
            remedy="Somebody changed it on the way, or the lock is wrong. Run `make setup` again to fetch it anew.",
        )
    (folder / jar.use).mkdir(parents=True, exist_ok=True)
    fetched.replace(folder / jar.use / jar.file)


def _prune(jars: list[Jar], folder: Path) -> None:
    """An older version beside a new one would be on the class path too."""
    known = {(jar.use, jar.file) for jar in jars}
    for path in folder.glob("*/*.jar"):
        if (path.parent.name, path.name) not in known:
            path.unlink()


def _cause(log: Path) -> str:
    """Ivy is another program: its words are all that it tells."""
    text = log.read_text(errors="replace")[-20_000:]
    if "No space left" in text:
        return "the disk is full"
    if "PKIX path" in text:
        return "this Java does not trust the repository's certificate"
    if any(word in text for word in ("UnknownHost", "ConnectException", "timed out", "NoRouteToHost", "unreachable")):
        return "the repository does not answer; is there a network, or a proxy to be set?"
    return "the repository does not have it"


def main() -> int:
    """`python -m platform_core.services.jars LOG`: a step of set-up."""
    folder, log = Path(sys.prefix) / "weir-jars", Path(sys.argv[1])
    jars = read_lock()
    try:
        fetched = install(jars, folder, _show, log)
    except WeirError as error:
        print(f"\n{error}", file=sys.stderr)
        return error.exit_code
    total = sum(jar.size for jar in jars)
    start = "\r" if sys.stdout.isatty() else ""
    print(f"{start}    {len(jars)} jars, {total / 1e6:.0f} MB, {fetched} of them fetched; all have the locked SHA-256.")
    return 0


def _show(done: int, total: int) -> None:
    line = f"    {min(done, total) / 1e6:.1f} of {total / 1e6:.1f} MB"
    if sys.stdout.isatty():
        print(f"\r{line}   ", end="", flush=True)
    elif done * 5 // total > _shown[0]:  # a log wants a line each fifth
        _shown[0] = done * 5 // total
        print(line, flush=True)


_shown = [0]


if __name__ == "__main__":
    raise SystemExit(main())
