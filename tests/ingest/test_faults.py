from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from ingest.generators.faults import Faults, Sent, sent
from ingest.generators.stocks import malformed, records
from platform_core.errors import UsageError

COUNT = 20_000
LATE_BY, FUTURE_BY = 30_000, 86_400_000


def with_faults(faults: Faults, seed: int = 1) -> list[Sent]:
    return list(sent(islice(records(1, 0), COUNT), faults, seed, malformed, LATE_BY, FUTURE_BY))


def test_without_faults_the_records_are_sent_as_they_are() -> None:
    assert [one.record for one in with_faults(Faults())] == list(islice(records(1, 0), COUNT))


def test_each_fault_befalls_its_share() -> None:
    found = Counter(one.fault for one in with_faults(Faults(0.1, 0.05, 0.02, 0.01)))
    for name, share in {"late": 0.1, "duplicated": 0.05, "malformed": 0.02, "far_future": 0.01}.items():
        assert found[name] / COUNT == pytest.approx(share, rel=0.15)


def test_the_sound_records_do_not_depend_on_the_faults() -> None:
    sound = set(islice(records(1, 0), COUNT))
    assert {one.record for one in with_faults(Faults(late=0.2, malformed=0.2)) if not one.fault} < sound


def test_the_same_seed_spoils_the_same_records() -> None:
    faults = Faults(0.1, 0.1, 0.1, 0.1)
    assert with_faults(faults) == with_faults(faults)
    assert with_faults(faults, seed=2) != with_faults(faults)


def test_a_late_record_keeps_its_turn_and_is_stamped_before_it() -> None:
    for one, record in zip(with_faults(Faults(late=1)), records(1, 0), strict=False):
        assert one == Sent(record.timestamp_ms, record._replace(timestamp_ms=record.timestamp_ms - LATE_BY), "late")


def test_a_far_future_record_keeps_its_turn_and_is_stamped_after_it() -> None:
    (one, *_), record = with_faults(Faults(far_future=1)), next(records(1, 0))
    assert one == Sent(0, record._replace(timestamp_ms=FUTURE_BY), "far_future")


def test_a_duplicate_follows_its_record_and_equals_it() -> None:
    both = with_faults(Faults(duplicated=1))
    assert len(both) == 2 * COUNT
    assert [(one.record, one.fault) for one in both[::2]] == [(one.record, "") for one in both[1::2]]
    assert {one.fault for one in both[1::2]} == {"duplicated"}


@pytest.mark.parametrize("wrong", [{"late": 1.5}, {"malformed": -0.1}, {"late": 0.6, "duplicated": 0.6}])
def test_shares_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Faults(**wrong)
