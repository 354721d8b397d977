"""A Kafka Streams peer, exactly once, on our broker: a Maven project with a launcher `ks`, where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platform_core.settings import ROOT, Settings

PLACE = ROOT.parent / "shared" / "peers" / "kafka_streams"
NAMES = {"stock_stats": "stockstats", "word_count": "wordcount", "clickstream": "clickstream"}
_SUFFIX = "-peer"


class NoPeer(Exception):
    """Says why there is none to compare with."""


@dataclass(frozen=True)
class Peer:
    folder: Path
    servers: str

    def generate(self, job: str, records: int, profiles: int) -> None:
        more = ["--profiles", str(profiles)] if job == "clickstream" else []
        self._ks("gen", NAMES[job], "--records", str(records), "--partitions", "4", "--seed", "1", *more)

    def catch_up(self, job: str) -> dict[str, Any]:
        """The peer's own figures: `records_per_s` counts from its start to the last committed offset, not the JVM's."""
        state = self.folder / "state"
        answer = self._ks(NAMES[job], "--mode", "catch-up", "--state-dir", str(state), "--no-flush", "true")
        return json.loads(answer.splitlines()[-1])

    def _ks(self, *arguments: str) -> str:
        argv = [str(self.folder / "ks"), *arguments, "--bootstrap", self.servers, "--suffix", _SUFFIX]
        ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=900)
        if ran.returncode != 0:
            raise NoPeer(f"not compared: {' '.join(arguments[:2])} failed: {_first_line(ran.stderr)}")
        return ran.stdout.strip()


def build(settings: Settings, place: Path) -> Peer:
    """A copy of it, compiled; NoPeer where the folder, Maven or its packages are missing."""
    maven = shutil.which("mvn")
    if not (place / "pom.xml").is_file():
        raise NoPeer("not compared: no peer there; --peer names its folder")
    if maven is None:
        raise NoPeer("not compared: no mvn to build the peer with")
    folder = settings.home / "peer"
    shutil.copytree(place, folder, copy_function=shutil.copyfile)
    (folder / "ks").chmod(0o755)
    ran = subprocess.run([maven, "-B", "-q", "package"], cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise NoPeer(f"not compared: the peer was not built: {_first_line(ran.stdout)}")
    return Peer(folder, settings.kafka.servers)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no output")[:200]
