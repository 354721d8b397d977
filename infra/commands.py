"""Runs a command of set-up: in an environment of its own, shown as it goes, logged, and explained when it fails."""

from __future__ import annotations

import os
import pty
import re
import ssl
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = Path(os.environ.get("WEIR_HOME", ROOT / ".weir")) / "logs" / "setup.log"

# Settings of pip and uv that name where packages come from are obeyed; those that would put them elsewhere are not.
OBEYED = re.compile(r"(PIP|UV)_.*(INDEX|CERT|PROXY|TRUSTED|INSECURE|TIMEOUT|RETRIES|CACHE_DIR|TLS|OFFLINE|KEYRING).*")


class Failed(Exception):
    """A step that did not work: the cause, and what to do."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.cause, self.remedy = cause, remedy


def environment() -> dict[str, str]:
    """Ours, without what would turn pip, uv or Python away from .venv."""
    ours = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV", "CONDA_")) or OBEYED.fullmatch(name)
    }
    ours["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    for of_uv, of_pip in (
        ("UV_DEFAULT_INDEX", "index-url"),
        ("UV_INDEX", "extra-index-url"),
        ("SSL_CERT_FILE", "cert"),
    ):
        found = ours.get(f"PIP_{of_pip.upper().replace('-', '_')}") or pip_config().get(of_pip)
        if found:
            ours.setdefault(of_uv, found)
    if ssl.create_default_context().cert_store_stats()["x509_ca"]:  # a company's own authority is in the system's store
        ours.setdefault("UV_SYSTEM_CERTS", "1")
    return ours


@cache
def pip_config() -> dict[str, str]:
    """What pip.conf says of mirrors and certificates; uv does not read it."""
    if not PYTHON.exists():
        return {}
    told = subprocess.run([PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    pairs = (line.partition("=") for line in told.splitlines() if line.startswith(("global.", "install.")))
    return {name.partition(".")[2]: text.strip("'\"") for name, _, text in pairs}


def run(command: list[str | Path]) -> None:
    """Runs it, shows what it prints and keeps that in the log."""
    began = LOG.stat().st_size
    code = (on_terminal if sys.stdout.isatty() else piped)([str(word) for word in command])
    if code != 0:
        with LOG.open("rb") as log:
            log.seek(began)
            raise diagnosed(Path(command[0]).name, code, log.read().decode(errors="replace"))


def on_terminal(command: list[str]) -> int:
    """Through a terminal of its own, so that it draws its progress bars."""
    with LOG.open("ab") as log:

        def read(descriptor: int) -> bytes:
            data = os.read(descriptor, 65536)
            log.write(data)
            return data

        before, ours = dict(os.environ), environment()
        os.environ.clear()
        os.environ.update(ours)
        try:
            return os.waitstatus_to_exitcode(pty.spawn(command, read))
        finally:
            os.environ.clear()
            os.environ.update(before)


def piped(command: list[str]) -> int:
    with (
        LOG.open("ab") as log,
        subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as child,
    ):
        for line in child.stdout or ():
            log.write(line)
            if line.startswith((b" + ", b" - ", b" ~ ")):  # uv's list of 141 packages
                continue
            sys.stdout.buffer.write(b"    " + line.strip() + b"\n")
            sys.stdout.flush()
    return child.returncode


NETWORK = "the network or the package index does not answer"
CAUSES = (  # the words of other programs are all that they tell of a cause
    ("No space left", "the disk is full", "Make room, then run `make setup` again: it goes on where it stopped."),
    ("THESE PACKAGES DO NOT MATCH|[Hh]ash mismatch|was refused", "a download is not what the lock says", "Try again; "
     "if it stays so, somebody changes files on the way, or the lock is wrong."),
    ("invalid peer certificate|certificate verify|PKIX path", "the package index shows a certificate that this machine "
     "does not trust", "Name your authority's file in SSL_CERT_FILE, then run `make setup` again."),
    ("resolve host|dns error|[Tt]emporary failure|[Cc]onnection|timed out|[Nn]etwork|tunnel|UnknownHost|Failed to fetch"
     "|does not answer", NETWORK, "Check it (a proxy: HTTPS_PROXY; a mirror: PIP_INDEX_URL), then run `make setup` "
     "again: it goes on where it stopped."),
    ("No matching distribution|no wheels|no .*compatible wheel", "no wheel fits this Python and machine", "Use "
     "another Python: `make setup PYTHON=python3.12`."),
    ("Permission denied", "a file may not be written", "Correct its owner, then run `make setup` again."),
)  # fmt: skip


def diagnosed(program: str, code: int, words: str) -> Failed:
    for pattern, cause, remedy in CAUSES:
        if re.search(pattern, words):
            return Failed(cause, remedy)
    return Failed(f"{program} ended with code {code}", "Read the log, then run `make setup` again.")
