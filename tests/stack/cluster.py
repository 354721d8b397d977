"""A Spark standalone cluster from the wheel: a master and workers, each a process of its own."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from platform_core.services import java, ports
from tests.stack.running import Platform, Running, until

_DEPLOY = "org.apache.spark.deploy"
_SPARK = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    platform: Platform
    port: int
    page: int
    workers: list[Running] = field(default_factory=list[Running])

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def alive(self) -> int:
        """Workers that the master counts on; its page is there before what stands on it."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, json.JSONDecodeError):  # a page of HTML answers until that of JSON is there
            return 0

    def add_worker(self) -> None:
        name = f"worker-{len(self.workers) + 1}"
        folder = str(self.platform.settings.home / name)
        options = ("--host", "127.0.0.1", "--cores", "4", "--memory", "3g", "--webui-port", "0", "--work-dir", folder)
        self.workers.append(_spawn(self.platform, name, "worker.Worker", *options, self.url))


def a_cluster(platform: Platform, port: int, page: int, workers: int) -> Cluster:
    """Its processes end with the platform's."""
    cluster = Cluster(platform, port, page)
    options = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page))
    master = _spawn(platform, "master", "master.Master", *options)
    until(lambda: ports.answers(port), "the master answers", about=master.log)
    for _ in range(workers):
        cluster.add_worker()
    until(lambda: cluster.alive() == workers, "the workers are registered", about=master.log)
    return cluster


def _spawn(platform: Platform, name: str, what: str, *options: str) -> Running:
    env = platform.settings.child_environment() | {"SPARK_HOME": str(_SPARK), "SPARK_SCALA_VERSION": "2.13"}
    command = [str(java.find().command), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{_SPARK}/jars/*", f"{_DEPLOY}.{what}"]
    return platform.spawn(name, [*command, *options], env)
