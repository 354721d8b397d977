"""The protocol between the platform and an archive: which program does what, what it is given, what it answers.

An archive runs its own code for years, under a platform whose modules have other names by then. So the platform enters
it by the programs of this page alone. The manifest carries the version of the protocol that the archive was frozen
with; one without a version has version 0, whose programs stood where modules of that time did. A newer platform starts
older archives; nobody starts an archive of a newer protocol than his own.

Every program is `PYTHON -P -m MODULE ARGUMENTS`, with an interpreter of the archive's own locks, and this environment:

    PYTHONPATH                              the archive's code, and nothing else
    PYTHONDONTWRITEBYTECODE=1               a byte code file in an archive is a file that was not frozen
    PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON   the interpreter
    JAVA_HOME                               where set-up has installed a Java
    WEIR_PROFILE                            the path of the profile's file
    WEIR_HOME, WEIR_WAREHOUSE, WEIR_CHECKPOINTS, WEIR_<SECTION>__<FIELD>
                                            the settings; a field that the archive does not know is passed over

Versions 0 and 1 differ in names and in what `describe` tells; the rest is the same:

    run RELEASE       drives stock_stats@v1 until SIGTERM, SIGINT or another wanted state; finishes its batch. Its
                      output is a log: a JSON object a line. Runs in WEIR_HOME. Exit code 0: stopped as asked. 64 to
                      78 without 75: a permanent error's own, no restart changes it. 75 and others: worth a restart.
    describe JOB      last line: {"declared": {...}, "fingerprint": "..."}, since version 1 also "protocol" and
                      "rows_version". Another exit code than 0: the code does not load, and the last line of standard
                      error says why.
    explain REQUEST   the path of a JSON file: {"job", "rows", "start", "end", "ignored", "left", "right"}; `rows` is a
                      Parquet file of differing rows with number, side and kind, start and end are offsets, left and
                      right lists of {"start", "end", "late_before_ms", "clock_before_ms"}. Last line: a list of the
                      numbers of rows for which late records account. Another exit code than 0: nothing is explained.
    trial JOB FOLDER  standard input: one line, {"start": offsets, "end": offsets, "times": bool}, or its end, which
                      ends the program. Writes the Delta table FOLDER/rows. Last line: {"rows": n}, and with `times`
                      "oldest_ms" and "newest_ms" of the events. Another exit code than 0: the batch failed.
    jars LOG          every jar of the archive's lock stands in weir-jars of the interpreter's environment, proven by
                      its hash, and no other does. Another exit code than 0: not so, and LOG says why.

Offsets are {topic: {"partition": next offset}}. A change that an older archive or platform would not understand is a
new version here. What a running release shares with others is no part of this: the control store's tables, the position
in each commit, checkpoints, groups and transactional ids stay as they are, or are only added to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from platform_core.errors import ArchiveError

PROTOCOL = 1
Verb = Literal["run", "describe", "explain", "trial", "jars"]
VERBS: tuple[Verb, ...] = get_args(Verb)
_FORMER: Mapping[int, Mapping[Verb, str]] = {
    0: {  # frozen without a version, until commit 186ad77
        "run": "platform_core.stream.driver",
        "describe": "platform_core.release.declared",
        "explain": "platform_core.release.compare.late",
        "trial": "platform_core.release.plan.batch",
        "jars": "platform_core.services.jars",
    }
}


def module_of(protocol: int, verb: Verb) -> str:
    """The program's module in an archive of that version."""
    if protocol > PROTOCOL:
        raise ArchiveError(
            f"The archive was frozen with version {protocol} of the protocol; this platform knows {PROTOCOL}.",
            remedy="Run it with the platform that froze it, or a newer one.",
        )
    return _FORMER[protocol][verb] if protocol in _FORMER else f"platform_core.archived.{verb}"


def file_of(protocol: int, verb: Verb) -> str:
    """The program's path in an archive of that version."""
    return module_of(protocol, verb).replace(".", "/") + ".py"


def command(python: Path | str, protocol: int, verb: Verb, *arguments: str) -> list[str]:
    """-P: nothing that stands where it runs is imported."""
    return [str(python), "-P", "-m", module_of(protocol, verb), *arguments]
