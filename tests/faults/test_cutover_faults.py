"""Everything that carries a cutover is killed at once, at each of its steps, there and back, under load.

The tests share one platform and follow each other: what one leaves behind is where the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from platform_core.control import aliases, releases, wanted
from platform_core.cutover import protocol, request
from platform_core.cutover.model import Cutover
from platform_core.names import ReleaseId
from platform_core.operations import Caller
from platform_core.operations.compare import compare
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.services import postgres
from platform_core.testing.oracle import Closing, Oracle
from tests.conftest import Broker
from tests.stack.running import Platform, a_home, job_in, until
from tests.stack.statistics import published, read_all, trades_of

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.timeout(1800)]
PREFIX, JOB = "cutover-faults", "stock_stats"
V1, V2 = ReleaseId(JOB, 1), ReleaseId(JOB, 2)
LOAD = ["--rate", "200", "--late", "0.02", "--late-by", "20 seconds", "--malformed", "0.005"]


@pytest.fixture(scope="module")
def platform(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """v1 live, v2 following, under load."""
    more = {
        "WEIR_MOVES__FOLLOW_SECONDS": "2",
        "WEIR_SUPERVISION__LEASE_SECONDS": "5",
    }
    with a_home(tmp_path_factory.mktemp(PREFIX), PREFIX, broker.servers, **more) as running:
        running.freeze(JOB)
        running.generate("stocks", *LOAD)
        wanted.want(running.store, V1, "run", "a test")
        running.supervise()
        running.works(V1)
        release_candidate(JOB, running.settings, running.store, "a test", CandidateOptions(again=True))
        until(lambda: releases.get(running.store, V2).state == "following", "the candidate follows")
        yield running


def asked(platform: Platform, kind: str) -> Cutover:
    if kind == "rollback":
        return request.roll_back(platform.store, [JOB], "a test")
    return request.cut_over(platform.store, [f"{JOB}@v2"], "a test")


def ready(platform: Platform, kind: str) -> None:
    """Each has committed a moment ago; a cutover wants a comparison that passed, too."""
    platform.works(V1, V2)
    if kind == "cutover":
        outcome = compare(Caller(platform.settings, platform.store, "a test"), JOB)
        assert outcome.verdict.passed, outcome.verdict.reasons


def kill_everything(platform: Platform) -> None:
    """But the broker, which others share, and the generator."""
    platform.power_cut(sparing=[platform.service("generator-stocks")])
    platform.serve(postgres.server(platform.settings))


def live(platform: Platform) -> ReleaseId:
    alias = aliases.live(platform.store, JOB)
    assert alias is not None
    return alias.release


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        ("cutover", "requested"),
        ("rollback", "held"),
        ("cutover", "aligned"),
        ("rollback", "flipped"),
    ],
)
def test_whatever_is_killed_the_alias_is_old_or_new_and_the_same_command_finishes_it(
    platform: Platform, kind: str, phase: str
) -> None:
    old, new = (V1, V2) if kind == "cutover" else (V2, V1)
    ready(platform, kind)
    begun = asked(platform, kind)
    order = ["requested", "held", "aligned", "flipped", "swapped"]
    reached = lambda: order.index(protocol.get(platform.store, begun.id).phase) >= order.index(phase)  # noqa: E731
    until(reached, f"{kind} {begun.id} is {phase}", 120)
    kill_everything(platform)
    found = protocol.get(platform.store, begun.id)
    assert live(platform) == (new if found.phase in ("flipped", "swapped") else old)
    platform.supervise()
    again = asked(platform, kind)
    assert again.id == begun.id
    until(lambda: not protocol.get(platform.store, begun.id).open, f"{kind} {begun.id} ends", 300)
    assert protocol.get(platform.store, begun.id).phase == "swapped"
    assert live(platform) == new
    assert [releases.get(platform.store, one).state for one in (old, new)] == ["standby", "live"]


def test_after_all_that_table_and_topic_hold_what_a_batch_computes(platform: Platform, spark: SparkSession) -> None:
    platform.works(V1, V2)
    assert platform.service("generator-stocks").end() == 0
    for release in (V1, V2):
        read_all(platform, release, f"{PREFIX}-stocks")
    supervisor = platform.service("supervisor")
    assert supervisor.end() == 0
    for release in (V1, V2):
        job = job_in(platform.settings.storage.archive(release) / "code", JOB)
        oracle = Oracle(spark, platform.settings, job, release, Closing("window_end", "5 seconds"))
        assert oracle.table() == [], release
    assert published(platform, f"{PREFIX}-stockstats-output") == trades_of(platform)
