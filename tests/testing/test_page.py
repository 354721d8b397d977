"""The page on testing a job is true: its examples are tests, and run here."""

from __future__ import annotations

import re
from typing import Any

import pytest

from platform_core import testing
from platform_core.settings import ROOT
from platform_core.testing import Kit

PAGE = (ROOT / "infra" / "runbooks" / "testing-a-job.md").read_text()
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S))


@pytest.mark.parametrize("example", re.findall(r"^def (test_\w+)", CODE, re.M))
def test_the_page_says(example: str, kit: Kit) -> None:
    names: dict[str, Any] = {}
    exec(compile(CODE, "testing-a-job.md", "exec"), names)
    names[example](kit)


def test_the_page_knows_every_word_of_a_script() -> None:
    words = [name for name in testing.__all__ if name.isupper() and name != "START"]
    assert [word for word in words if f"| `{word}` |" not in PAGE] == []
