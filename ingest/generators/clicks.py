"""Sessions of users who search, click within and outside a second of it, and change their profiles in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from random import Random

from ingest.generators.records import GeneratedRecord, Generator, merged
from ingest.topics import PAGE_VIEWS, SEARCHES, USER_PROFILES

USERS = 1000
NO_PROFILE_EVERY = 10  # users 10, 20, 30, ... never have a profile
SEARCHING = 0.85  # of the sessions begin with a search,
REFINING = 0.2  # of these have a second one at once, so that a click may follow two,
CHANGING = 0.1  # and of these change the profile before the first click
LEAVING = 0.2  # of the changes delete it
CLICKS = 3  # at most
SOON = 0.6  # of the clicks come within a second of the search, both ends in
SECOND_MS, LATER_MS = 1000, 10_000
RATE = 50.0

_SEARCHED = 1 + REFINING + CHANGING * (1 - 1 / NO_PROFILE_EVERY)
RECORDS_A_SESSION = (1 + CLICKS) / 2 + SEARCHING * _SEARCHED

_VIEW = b'{"user_id":%d,"page":"/%s/%d"}'
_SEARCH = b'{"user_id":%d,"search_terms":"%s %s"}'
_NAMES = ("Ada", "Björn", "Chloé", "Dmitri", "Elif", "Farah", "Grace", "Hiro", "Inês", "Jan")
_COLOURS = tuple(word.encode() for word in ("red", "blue", "green", "black", "größte", "naïve"))
_THINGS = tuple(word.encode() for word in ("shoes", "café", "chairs", "lamps", "books", "bicycles", "coats", "maps"))
_INTERESTS = ("reading", "running", "music", "chess", "cooking", "sailing")
_NOT_A_CLICK = (b'{"user_id":7,', b'["user_id",7]', b"7", b"\xff\xfe\x00")


def records(seed: int, start_ms: int, rate: float = RATE, users: int = USERS) -> Iterator[GeneratedRecord]:
    """First everybody's profile, then sessions side by side, merged by time; the rate says how many run at once."""
    random = Random(f"clicks {seed}")
    for user in range(1, users + 1):
        if user % NO_PROFILE_EVERY:
            yield _profile(random, user, start_ms)
    gap_ms = RECORDS_A_SESSION * 1000 / rate
    yield from merged(_sessions(random, start_ms, gap_ms, users))


def _sessions(
    random: Random, start_ms: int, gap_ms: float, users: int
) -> Iterator[tuple[float, Iterator[GeneratedRecord]]]:
    begins = float(start_ms)
    while True:
        begins += gap_ms * 2 * random.random()
        yield begins, _session(random, 1 + int(random.random() * users), int(begins))


def _session(random: Random, user: int, at: int) -> Iterator[GeneratedRecord]:
    draw = random.random
    if draw() < SEARCHING:
        yield _search(draw(), user, at)
        if draw() < REFINING:
            yield _search(draw(), user, at + 1 + int(draw() * SECOND_MS / 2))
        if user % NO_PROFILE_EVERY and draw() < CHANGING:
            yield _profile(random, user, at + int(draw() * SECOND_MS), LEAVING)
    for _ in range(1 + int(draw() * CLICKS)):
        soon = draw() < SOON
        after = int(draw() * (SECOND_MS + 1)) if soon else SECOND_MS + 1 + int(draw() * (LATER_MS - SECOND_MS))
        yield _view(draw(), user, at + after)


def _view(drawn: float, user: int, at: int) -> GeneratedRecord:
    place = int(drawn * 800)
    return GeneratedRecord(PAGE_VIEWS.name, b"%d" % user, _VIEW % (user, _THINGS[place % len(_THINGS)], place), at)


def _search(drawn: float, user: int, at: int) -> GeneratedRecord:
    colour, thing = divmod(int(drawn * len(_COLOURS) * len(_THINGS)), len(_THINGS))
    return GeneratedRecord(SEARCHES.name, b"%d" % user, _SEARCH % (user, _COLOURS[colour], _THINGS[thing]), at)


def _profile(random: Random, user: int, at: int, leaving: float = 0) -> GeneratedRecord:
    draw = random.random
    if draw() < leaving:
        return GeneratedRecord(USER_PROFILES.name, b"%d" % user, None, at)
    profile = {
        "user_id": user,
        "user_name": f"{_NAMES[int(draw() * len(_NAMES))]} {user}",
        "zipcode": f"{int(draw() * 100_000):05d}",
        "interests": [interest for interest in _INTERESTS if draw() < 0.3],
    }
    return GeneratedRecord(USER_PROFILES.name, b"%d" % user, json.dumps(profile, ensure_ascii=False).encode(), at)


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_CLICK)


def of_users(users: int = USERS) -> Generator:
    topics = (PAGE_VIEWS, SEARCHES, USER_PROFILES)
    return Generator("clicks", topics, RATE, partial(records, users=users), malformed, __doc__)
