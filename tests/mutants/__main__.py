from __future__ import annotations

import sys

from platform_core.settings import ROOT
from tests.mutants.running import run
from tests.mutants.table import MUTANTS


def main(names: list[str]) -> int:
    known = [one.name for one in MUTANTS]
    if unknown := sorted(set(names) - set(known)):
        print(f"No mutant is called {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    outcomes: list[str] = []
    for result in run(ROOT, [one for one in MUTANTS if not names or one.name in names]):
        print(f"{result.outcome:8}  {result.mutant}", *result.said.splitlines(), sep="\n    ", flush=True)
        outcomes.append(result.outcome)
    return 0 if set(outcomes) == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
