"""Installs all that weir needs into .venv, from locks with hashes. Run by `make setup`; needs Python alone.

Each step says what it does and is skipped when its result is there, so that a run after an interrupted one goes on
where that stopped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from infra.commands import LOG, PYTHON, ROOT, VENV, Failed, diagnosed, environment, run

LOCKS = ROOT / "infra" / "locks"
UV = VENV / "bin" / "uv"
STAMP = VENV / "weir-setup.json"
PYTHONS = ((3, 11), (3, 13))
ROOM_MB = 3000  # .venv takes 2.2 GB, the wheels on their way the rest


def main(with_tools: bool) -> int:
    began = time.monotonic()
    os.chdir(ROOT)
    wanted = stamp_of(with_tools)
    if already(wanted):
        print(f"weir is set up in {VENV.name}; nothing to do.")
        return 0
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a") as lock:
        only_one(lock.fileno())
        for number, (name, step) in enumerate(steps(with_tools), 1):
            print(f"[{number}/{len(steps(with_tools))}] {name}", flush=True)
            try:
                step()
            except (Failed, OSError) as error:
                return explain(name, error)
    STAMP.write_text(json.dumps(wanted))
    print(
        f"weir is set up, in {time.monotonic() - began:.0f} s. `make demo` starts it; `make` lists what else there is."
    )
    return 0


def steps(with_tools: bool) -> list[tuple[str, Callable[[], None]]]:
    lock = LOCKS / "dev.lock" if with_tools else ROOT / "requirements.lock"
    return [
        ("Python and room on the disk", check_machine),
        ("a virtual environment in .venv", make_venv),
        ("uv, which installs the rest", install_uv),
        (f"packages, as {lock.relative_to(ROOT)} says", lambda: install(lock)),
        ("Java 17 or 21", find_java),
        ("jars of Spark and Kafka", fetch_jars),
        ("the classes that every Spark loads, in one file", share_classes),
        ("the command .venv/bin/weir", write_launcher),
    ]


def stamp_of(with_tools: bool) -> dict[str, str]:
    locks = [ROOT / "requirements.lock", *sorted(LOCKS.glob("*.lock*"))]
    return {
        "root": str(ROOT),
        "locks": hashlib.sha256(b"".join(path.read_bytes() for path in locks)).hexdigest(),
        "set-up": sha256(Path(__file__)) + sha256(Path(__file__).with_name("commands.py")),
        "tools": "yes" if with_tools else "no",
    }


def already(wanted: dict[str, str]) -> bool:
    """Whether an earlier run did all this. One with the tools has done more."""
    try:
        done = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    return PYTHON.exists() and done in (wanted, wanted | {"tools": "yes"})


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def only_one(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("    another set-up is at work; waiting for it", flush=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def check_machine() -> None:
    if not fits(sys.version_info[:2]):
        raise Failed(
            f"this is Python {sys.version.split()[0]} ({sys.executable}); weir needs {words(PYTHONS)}",
            "Install one, for instance python3.12, and run `make setup PYTHON=python3.12`.",
        )
    free = shutil.disk_usage(ROOT).free // 1_000_000
    if not (VENV / "weir-lock.sha256").exists() and free < ROOM_MB:
        raise Failed(f"{ROOT} has {free} MB free; set-up needs {ROOM_MB}", "Make room, or move the repository.")
    print(f"    Python {sys.version.split()[0]}, {free / 1000:.0f} GB free")


def fits(version: tuple[int, ...]) -> bool:
    return PYTHONS[0] <= version <= PYTHONS[1]


def words(versions: tuple[tuple[int, int], ...]) -> str:
    return " to ".join(".".join(str(part) for part in version) for version in versions)


def make_venv() -> None:
    if VENV.exists() and not venv_works():
        print("    .venv is not whole, or of another Python: making it anew")
        shutil.rmtree(VENV)
    if VENV.exists():
        print("    there already")
        return
    try:
        run([sys.executable, "-m", "venv", str(VENV)])
    except Failed as error:
        shutil.rmtree(VENV, ignore_errors=True)
        if "ensurepip" in LOG.read_text(errors="replace")[-5000:]:
            raise Failed(
                f"the Python at {sys.executable} comes without ensurepip",
                "Install its venv package (Debian and Ubuntu: apt install python3-venv), then run `make setup` again.",
            ) from error
        raise


def venv_works() -> bool:
    check = f"import sys, pip; sys.exit(not {PYTHONS[0]} <= sys.version_info[:2] <= {PYTHONS[1]})"
    try:
        return subprocess.run([PYTHON, "-c", check], capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install_uv() -> None:
    lock = LOCKS / "uv.lock"
    wanted = lock.read_text().split()[0].partition("==")[2]
    if UV.exists() and subprocess.run([UV, "--version"], capture_output=True, text=True).stdout.split()[1:2] == [
        wanted
    ]:
        print(f"    uv {wanted}, there already")
        return
    run([PYTHON, "-m", "pip", "install", "--require-hashes", "--no-deps", "--only-binary=:all:", "-r", lock])


def install(lock: Path) -> None:
    from_source = ["--no-binary", "pyspark", "--build-constraints", LOCKS / "build.lock"]  # pyspark has no wheel
    locked = ["--require-hashes", "--only-binary", ":all:", *from_source, "-r", lock]
    run([UV, "pip", "install", "--python", PYTHON, *locked])
    stamp = VENV / "weir-lock.sha256"  # proves to a release which lock this environment was made from
    stamp.write_text(sha256(ROOT / "requirements.lock"))


def find_java() -> None:
    module = [PYTHON, "-m", "platform_core.services.java"]
    if subprocess.run(module, cwd=ROOT, env=environment(), check=False).returncode == 0:
        return
    print("    installing one into .venv (101 MB)", flush=True)
    lock = LOCKS / "java.lock"
    run([UV, "pip", "install", "--python", PYTHON, "--require-hashes", "--only-binary=:all:", "-r", lock])
    run([*module, "wrap"])


def fetch_jars() -> None:
    run([PYTHON, "-m", "platform_core.services.jars", LOG])


def share_classes() -> None:
    run([PYTHON, "-m", "platform_core.services.classes", LOG])


def write_launcher() -> None:
    launcher = VENV / "bin" / "weir"
    launcher.write_text(
        "#!/bin/sh\n"  # through sh: a #! line takes no path with a blank
        '\'\'\'exec\' "$(dirname "$0")/python" "$0" "$@"\n'
        "' '''\n"
        "import sys\n\nfrom platform_core.cli import main\n\nsys.exit(main())\n"
    )
    launcher.chmod(0o755)
    for packages in (VENV / "lib").glob("python3.*/site-packages"):
        (packages / "weir.pth").write_text(f"{ROOT}\n")


def explain(step: str, error: Failed | OSError) -> int:
    if isinstance(error, OSError):
        error = diagnosed("Python", 1, f"{error}") if error.strerror else Failed(str(error), "Read the log.")
    print(
        f"\nSet-up stopped at: {step}\nCause:  {error.cause}.\nLog:    {LOG}\nRemedy: {error.remedy}", file=sys.stderr
    )
    return 69


if __name__ == "__main__":
    sys.exit(main("--tools" in sys.argv))
