"""The process from which run workers are forked: `python -m platform_core.orchestrate.forker ROOT MODULE PIPE`.

It has loaded the location, reads ids of runs from a named pipe, one a line, and forks a worker for each. When a source
has changed it replaces itself, at the latest for the next run, which so sees the tree as it is. It has one thread:
forks are safe.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path

from platform_core.control.owners import Owner

Sources = frozenset[tuple[str, int]]  # each file, and when it was changed
WORKERS_NEED = ("dagster._cli.api", "dagster_postgres", "psycopg2.extras", "platform_core.orchestrate.launching")
LOOK_SECONDS = 15.0
HELD, PENDING = "WEIR_FORKER_HELD", "WEIR_FORKER_PENDING"  # handed to a successor: the open pipe, the run it is for


def main(root: Path, module: str, pipe: Path) -> None:
    """For ever; in a worker, until its run has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers: the system clears them away
    loaded = _loaded(root, module)
    runs = io.FileIO(_opened(pipe), "r")  # unbuffered: what was not read is left to a successor
    run = os.environ.pop(PENDING, "") or _next_run(runs, root, loaded)
    while True:
        if sources(root) != loaded:
            _replace_itself(runs.fileno(), run)
        if os.fork() == 0:
            _work(run)
            gc.unfreeze()  # or libraries take what was frozen for leaks, and say so, when the worker ends
            return
        run = _next_run(runs, root, loaded)


def _next_run(runs: io.FileIO, root: Path, loaded: Sources) -> str:
    """Waits for it; meanwhile loads a tree that has changed and rests, so that no run has to wait for that."""
    before = loaded
    while not select.select([runs], [], [], LOOK_SECONDS)[0]:
        now = sources(root)
        if now == before != loaded:
            _replace_itself(runs.fileno(), "")
        before = now
    return runs.readline().decode().strip()


def sources(root: Path) -> Sources:
    """The Python files below the top-level packages that this process has imported from the tree."""
    tops = {name.partition(".")[0] for name in sys.modules}
    folders = [root / name for name in tops if (root / name).is_dir()]
    return frozenset((str(file), changed_at(file)) for folder in folders for file in folder.rglob("*.py"))


def changed_at(file: Path) -> int:
    """-1 when it was there a moment ago: an editor's temporary file."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return -1


def _loaded(root: Path, module: str) -> Sources:
    """Loads it; the sources that were there before, so that a change meanwhile counts as one. A tree that does not load
    is no reason to end: each run fails then, and says why."""
    began = time.time_ns()
    for name in (*WORKERS_NEED, module.partition(".")[0]):  # the folder counts also when the module does not load
        importlib.import_module(name)
    try:
        _build(module)
    except Exception:
        traceback.print_exc()
    gc.freeze()  # a collection in a worker would copy every page that it shares
    return frozenset((file, changed) for file, changed in sources(root) if changed < began)


def _build(module: str) -> None:
    """The location, once, whereby Dagster imports what it does at first use."""
    from dagster._core.code_pointer import ModuleCodePointer
    from dagster._core.definitions.reconstruct import ReconstructableRepository

    ReconstructableRepository(ModuleCodePointer(module, "weir")).get_definition()


def _opened(pipe: Path) -> int:
    """Open for both, so that it never ends when a writer closes it."""
    if HELD in os.environ:
        return int(os.environ.pop(HELD))
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe, 0o600)
    return os.open(pipe, os.O_RDWR)


def _replace_itself(pipe: int, run: str) -> None:
    os.set_inheritable(pipe, True)
    env = {**os.environ, HELD: str(pipe), PENDING: run}
    os.execve(sys.executable, [sys.executable, "-m", "platform_core.orchestrate.forker", *sys.argv[1:]], env)


def _work(run_id: str) -> None:
    """As `dagster api execute_run` does, which Dagster's launchers for containers start in a new Python."""
    import dagster as dg
    from dagster._cli.api import execute_run_command
    from dagster._grpc.types import ExecuteRunArgs

    from platform_core.orchestrate.launching import worker_tag

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with dg.DagsterInstance.get() as instance:
        instance.add_run_tags(run_id, worker_tag(Owner.this_process()))
        run = instance.get_run_by_id(run_id)
        if run is None or run.job_code_origin is None:
            raise LookupError(f"Run {run_id} is not in Dagster's storage, or says not which code it is of.")
        words = ExecuteRunArgs(run.job_code_origin, run_id, instance.get_ref()).get_command_args()
    execute_run_command.main(list(words[-1:]), standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
