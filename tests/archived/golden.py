"""Keeps what the cases leave in rows.json: `python -m tests.archived.golden` adds what is new, and changes nothing.

For another version of rows it writes all of them anew.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from platform_core.archived.rows import ROWS_VERSION
from platform_core.settings import load
from platform_core.testing import Kit, Result
from tests.archived.cases import cases
from tests.archived.frozen import code_of_then

KEPT = Path(__file__).with_name("rows.json")


def kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {"version": 0, "cases": {}}


def plain(result: Result) -> dict[str, Any]:
    """What a reader of table, topic or rejects can see, as JSON holds it. How a refusal is worded does not count."""
    refused = [f"{one.topic}[{one.partition}]@{one.offset}" for one in result.rejects]
    rows = [{name: _plain(value) for name, value in row.items()} for row in result.rows]
    return {"rows": rows, "published": result.newest_published, "refused": refused, "late": result.late}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if isinstance(value, int | None) else str(value)


def main() -> None:
    from platform_core.streaming.driver.session import session

    with tempfile.TemporaryDirectory() as folder:
        settings = load(environment={"WEIR_HOME": folder})
        kit = Kit(lambda: session(settings, "rows"), Path(folder))
        found: dict[str, Any] = kept()["cases"] if kept()["version"] == ROWS_VERSION else {}
        for name, case in cases(code_of_then(settings)).items():
            if name not in found:
                made = case()
                found[name] = plain(kit.run(made.job, made.script))
                KEPT.write_text(json.dumps({"version": ROWS_VERSION, "cases": found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
