"""Imports one module and prints what it did that a declaration must not do: `import_probe.py ROOT MODULE [FOLDER]`.

Reads of the environment count when code of this repository, or of FOLDER, made them: libraries have their own.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, MutableMapping

FORBIDDEN = ("socket.", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system", "os.startfile")
NOT_NEEDED = ("platform_core.settings", "platform_core.control", "platform_core.streaming", "platform_core.testing")


class Watched(MutableMapping[str, str]):
    """The environment, telling who reads it."""

    def __init__(self, real: MutableMapping[str, str], ours: tuple[str, ...], seen: list[str]) -> None:
        self._real, self._ours, self._seen = real, ours, seen

    def __getitem__(self, key: str) -> str:
        self._look(key)
        return self._real[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._real[key] = value

    def __delitem__(self, key: str) -> None:
        del self._real[key]

    def __iter__(self) -> Iterator[str]:
        self._look("all of it")
        return iter(self._real)

    def __len__(self) -> int:
        return len(self._real)

    def copy(self) -> dict[str, str]:
        return dict(self._real)

    def _look(self, key: str) -> None:
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame.f_back and frame.f_code.co_filename.startswith(("<frozen", os.__file__)):
            frame = frame.f_back
        file = frame.f_code.co_filename
        if file.startswith(self._ours) and "site-packages" not in file:
            self._seen.append(f"environment: {key} by {file}")


def main(root: str, module: str, *more: str) -> None:
    seen: list[str] = []
    sys.path[:0] = [root, *more]
    os.environ = Watched(os.environ, (root, *more), seen)  # type: ignore  # noqa: B003  (nothing is to be cleared)
    sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(FORBIDDEN) else None)
    importlib.import_module(module)
    done = list(seen)
    done += [f"module: {name}" for name in NOT_NEEDED if name in sys.modules]
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.SparkContext._gateway is not None:
        done.append("a JVM runs")
    print("\n".join(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
