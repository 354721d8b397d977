"""weir compare on real tables: what it prints, writes and ends with."""

from __future__ import annotations

import pytest

from platform_core.control.store import ControlStore
from platform_core.settings import Settings
from tests.cli.conftest import Weir
from tests.compare.paired import Job
from tests.compare.tables import stat

pytestmark = pytest.mark.stack


@pytest.fixture
def job(settings: Settings, store: ControlStore) -> Job:
    made = Job(settings, store)
    made.release(1, "live")
    made.release(2, "following")
    made.commit(1, [stat("A", price="1"), stat("B")], at=10)
    return made


def test_equal_tables_pass(weir: Weir, job: Job) -> None:
    job.commit(2, [stat("A", price="1"), stat("B")], at=10)
    ran = weir("compare", job.name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == (f"{job.id(1)} and {job.id(2)}: Delta versions 0 and 0, both at stocks[0]@10")
    assert ran.out.splitlines()[-1] == "verdict: pass"


def test_a_difference_fails_and_is_shown_with_both_values(weir: Weir, job: Job) -> None:
    job.commit(2, [stat("A", price="2"), stat("B")], at=10)
    ran = weir("compare", job.name, "--no-explain", "--html", "report.html")
    assert ran.code == 1
    assert "  - avg_price differs in 1 key, by 1 at most" in ran.out.splitlines()
    assert ran.out.splitlines()[-1].split() == ["A", "2026-01-31", "12:00:00Z", "avg_price", "1.000000", "2.000000"]
    assert "avg_price differs in 1 key" in (weir.folder / "report.html").read_text()


def test_json_has_figures_verdict_and_examples(weir: Weir, job: Job) -> None:
    job.commit(2, [stat("A", price="2"), stat("B")], at=10)
    ran = weir("compare", f"{job.name}@v2", "--json", "--expect", "avg_price=within 1")
    assert ran.code == 0
    assert (ran.json["passed"], ran.json["differing"], ran.json["unexplained"]) == (True, 1, 0)
    assert ran.json["examples"][0]["right"]["avg_price"] == "2.000000"


def test_what_cannot_be_compared_is_an_error_with_its_own_code(weir: Weir, job: Job) -> None:
    assert weir("compare", "nothing").code == 64
    assert weir("compare", job.name).code == 75  # v2 has written nothing yet
    assert weir("compare", job.name, "--expect", "avg_price").code == 64
