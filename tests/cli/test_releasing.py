"""weir plan and weir release, as a person and a pull request's check run them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copy

import psutil
import pytest

from platform_core.control import audit, releases, services, wanted
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.release.contents import JARS_LOCK, LOCK
from platform_core.release.first import first_release
from platform_core.settings import ROOT, Settings
from tests.cli.conftest import Ran, Weir
from tests.conftest import Broker
from tests.control.words import until
from tests.release.conftest import Tree, tree

__all__ = ["tree"]
pytestmark = pytest.mark.stack
Asked = Callable[..., Ran]
ROWS = ('lines.select("line")', 'lines.selectExpr("upper(line) AS line")')


@pytest.fixture
def live(settings: Settings, store: ControlStore, tree: Tree, broker: Broker) -> ReleaseId:
    _ = broker
    for name in (LOCK, JARS_LOCK):  # so that its environment is the running one
        (tree.root / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tree.root / name)
    return first_release(tree.job, settings.model_copy(update={"root": tree.root}), store, "ann").id


@pytest.fixture
def asked(weir: Weir, tree: Tree) -> Asked:
    """From the tree, as if it were the working tree."""

    def ask(*words: str) -> Ran:
        return weir(*words, PYTHONPATH=str(tree.root))

    return ask


def test_exit_codes_tell_a_check_what_the_change_is(asked: Asked, tree: Tree, live: ReleaseId) -> None:
    same = asked("plan", tree.job)
    assert (same.code, same.out.splitlines()[0]) == (0, f"{tree.job}: no change, compared with {live}")
    tree.edit("Lines, as they come.", "Lines.")
    assert asked("plan", tree.job).code == 10
    tree.edit(*ROWS)
    replay = asked("plan", tree.job)
    assert replay.code == 11
    assert "the transform's function same changed (operator selectExpr added, operator select removed)" in replay.out
    told = asked("plan", tree.job, "--json")
    assert (told.code, told.json["kind"], told.json["live"]) == (11, "must replay", str(live))
    assert told.json["reading"]["records"] == 0
    markdown = asked("plan", tree.job, "--markdown")
    assert markdown.out.startswith(f"### `{tree.job}`: must replay\n")


def test_a_job_that_is_not_there_is_named(asked: Asked, live: ReleaseId, tree: Tree) -> None:
    _ = live
    ran = asked("plan", "nothing")
    assert ran.code == 64
    assert f"There is no job 'nothing'.\nJobs: {tree.job}." in ran.err


def test_a_candidate_is_made_and_a_second_refused(
    asked: Asked, tree: Tree, live: ReleaseId, store: ControlStore
) -> None:
    refused = asked("release", tree.job)
    assert (refused.code, f"Nothing has changed since {live} was made." in refused.err) == (64, True)
    tree.edit(*ROWS)
    made = asked("release", tree.job, "--note", "louder", "--json")
    candidate = ReleaseId(tree.job, 2)
    assert made.code == 0
    assert (made.json["release"], made.json["state"]) == (str(candidate), "replaying")
    assert made.json["replay_from"]["asked"] == "earliest"
    assert wanted.all(store)[candidate].state == "run"
    second = asked("release", tree.job)
    assert (second.code, f"{candidate} is a candidate already" in second.err) == (64, True)


def test_a_release_may_be_waited_for_until_it_follows(
    asked: Asked, tree: Tree, live: ReleaseId, store: ControlStore
) -> None:
    tree.edit(*ROWS)
    candidate = ReleaseId(tree.job, 2)
    services.beat(store, "supervisor", {})
    with ThreadPoolExecutor(1) as threads:
        ran = threads.submit(asked, "release", tree.job, "--wait")
        until(lambda: len(releases.of_job(store, tree.job)) == 2 or ran.done(), 60)
        services.beat(store, "supervisor", {})
        releases.set_state(store, candidate, "following", "its replay has reached the live release")
        done = ran.result(60)
    assert (done.code, done.out) == (
        0,
        f"{candidate}: following; see `weir compare {tree.job}`, then `weir cutover {tree.job}`\n",
    )
    assert done.err.startswith(f"{candidate}: replaying from earliest, beside the live release\n")
    _ = live


def test_a_revision_is_put_in_force_and_taken_back(
    asked: Asked, tree: Tree, live: ReleaseId, store: ControlStore
) -> None:
    tree.edit("Lines, as they come.", "Lines.")
    made = asked("release", tree.job, "--revision", "--note", "words")
    assert (made.code, made.out) == (0, f"{live}.1: in force\n")
    assert releases.get(store, live).revision == 1
    back = asked("release", tree.job, "--back-to", "0")
    assert (back.code, back.out) == (0, f"{live}: in force\n")
    assert [one.action for one in audit.read(store, str(live))][:2] == ["revision", "revision"]
    tree.edit(*ROWS)
    wrong = asked("release", tree.job, "--revision")
    assert (wrong.code, f"This is no revision of {live}, rows would differ" in wrong.err) == (64, True)


@pytest.mark.parametrize(
    "words", [("--revision", "--again"), ("--back-to", "1", "--from", "2026-01-01"), ("--revision", "--back-to", "1")]
)
def test_what_contradicts_itself_is_refused(asked: Asked, tree: Tree, words: tuple[str, ...]) -> None:
    ran = asked("release", tree.job, *words)
    assert (ran.code, "A revision replays nothing." in ran.err) == (64, True)


@pytest.mark.long
def test_the_last_hour_is_tried_with_both_and_shown(
    asked: Asked, tree: Tree, live: ReleaseId, broker: Broker, settings: Settings
) -> None:
    broker.produce(f"lines-{tree.job}", *[(None, line) for line in (b"a", b"b", b"C")], at=int(time.time() * 1000))
    unchanged = asked("plan", tree.job, "--last", "1h")
    assert (unchanged.code, "both transforms" in unchanged.out) == (0, False)
    tree.edit(*ROWS)
    ran = asked("plan", tree.job, "--last", "1h")
    assert ran.code == 11
    doing = [line.partition(" s  ")[2] for line in ran.err.splitlines()]
    assert doing[:3] == [
        f"starting {live} and the working tree, each with its own Spark ...",
        "comparing their declarations ...",
        "choosing the records of the last 60 minutes ...",
    ]
    assert doing[3].startswith("reading 3 records up to ")
    assert doing[4:] == [
        "asking what a replay would read and cost ...",
        f"waiting for the rows of {live} ...",
        "waiting for the rows of the working tree ...",
        f"comparing 3 rows of {live} with 3 rows of the working tree ...",
    ]
    assert f"3 rows of {live}, 3 of the working tree; 4 differ" in ran.out
    assert "over 3 records" in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["a", "there"] in lines
    assert ["A", "there"] in lines
    assert not list(Path(settings.home / "warehouse").glob(f"{tree.job}*"))
    left = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert not [line for line in left if tree.job in line and "archived.trial" in line]
