"""Only time that the supervisor really watched counts against a driver."""

from __future__ import annotations

from platform_core.control.owners import Owner
from platform_core.supervise.unresponsive import UnresponsiveTimers

ONE, TWO = Owner("here", 1, 1.0), Owner("here", 2, 2.0)
BOTH = frozenset({ONE, TWO})


def watching(*moments: float) -> UnresponsiveTimers:
    patience = UnresponsiveTimers(most=5.0)
    for moment in moments:
        patience.tick(moment)
    return patience


def test_silence_is_counted_from_when_it_was_first_seen() -> None:
    patience = watching(100.0)
    assert patience.silent_for(frozenset({ONE}), held=False) == 0.0
    patience.tick(103.0)
    assert patience.silent_for(frozenset({ONE}), held=False) == 3.0


def test_a_renewed_lease_ends_the_silence() -> None:
    patience = watching(100.0)
    patience.silent_for(frozenset({ONE}), held=False)
    patience.tick(103.0)
    assert patience.silent_for(frozenset({ONE}), held=True) == 0.0
    assert patience.silent_for(frozenset({ONE}), held=False) == 0.0


def test_a_supervisor_that_was_stopped_for_an_hour_has_not_watched_for_an_hour() -> None:
    patience = watching(100.0)
    patience.silent_for(frozenset({ONE}), held=False)
    patience.tick(3700.0)
    assert patience.silent_for(frozenset({ONE}), held=False) == 5.0


def test_while_the_store_was_away_nobody_was_silent() -> None:
    patience = watching(100.0, 104.0)
    patience.silent_for(frozenset({ONE}), held=False)
    patience.blind()
    patience.tick(160.0)
    assert patience.silent_for(frozenset({ONE}), held=False) == 0.0


def test_the_time_to_stop_begins_with_the_first_request() -> None:
    patience = watching(100.0)
    patience.asked(ONE)
    patience.tick(102.0)
    patience.asked(ONE)
    patience.tick(104.0)
    assert patience.stopping_for(frozenset({ONE})) == 4.0


def test_a_second_process_must_be_asked_too() -> None:
    patience = watching(100.0)
    patience.asked(ONE)
    assert patience.stopping_for(BOTH) is None
    assert patience.stopping_for(frozenset()) is None


def test_those_that_ended_are_forgotten() -> None:
    patience = watching(100.0)
    patience.asked(ONE)
    patience.asked(TWO)
    patience.forget_all_but(frozenset({TWO}))
    assert patience.stopping_for(frozenset({ONE})) is None
    assert patience.stopping_for(frozenset({TWO})) == 0.0
