"""Lines of text whose words are as unequal as in a natural language: the n-th comes 1/n as often as the first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import accumulate, count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import WORDCOUNT_INPUT

VOCABULARY = 2000
WORDS_A_LINE = (6, 14)
RATE = 20.0

_TEXT = """
    the of and to in a is that it was for on as with be by at from this are or an été which not have but one had
    naïve they you were all their there been has when who will more no if out so said what up its about into
    than them can only other new some could time these two may then do first any my now such like our over man
    me even most made after also did many before must through back years where much your way well down should
    because each just those people mr how too little state good very make world still own see men work long get
    here between both life being under never day same another know while last might us great old year off come
    since against go came right used take three café Straße
"""
_FREQUENT = _TEXT.split()
_SYLLABLES = tuple(first + last for first in "bdgklmnprstvwz" for last in ("a", "é", "i", "o", "u"))
_NOT_TEXT = (b"\xff\xfe the end", b"caf\xe9 noir", b"\xc3")  # no UTF-8


def records(seed: int, start_ms: int, rate: float = RATE, vocabulary: int = VOCABULARY) -> Iterator[GeneratedRecord]:
    random = Random(f"lines {seed}")
    words, weights = words_of(vocabulary), list(accumulate(1 / (rank + 1) for rank in range(vocabulary)))
    shortest, longest = WORDS_A_LINE
    for number in count():
        length = shortest + int(random.random() * (longest - shortest + 1))
        line = " ".join(random.choices(words, cum_weights=weights, k=length))
        yield GeneratedRecord(
            WORDCOUNT_INPUT.name, None, _punctuated(line, number), start_ms + int(number * 1000 / rate)
        )


def words_of(vocabulary: int) -> list[str]:
    """Frequent words first, made-up ones after them, all different."""
    return [_FREQUENT[rank] if rank < len(_FREQUENT) else _made_up(rank) for rank in range(vocabulary)]


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_TEXT)


def _made_up(rank: int) -> str:
    syllables: list[str] = []
    while rank:
        rank, place = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[place])
    return "".join(syllables)


def _punctuated(line: str, number: int) -> bytes:
    if number % 3 == 0:
        line = f"{line[0].upper()}{line[1:]}."
    if number % 5 == 0:
        line = line.replace(" ", ", ", 1)
    return line.encode()


def of_words(vocabulary: int = VOCABULARY) -> Generator:
    return Generator("lines", (WORDCOUNT_INPUT,), RATE, partial(records, vocabulary=vocabulary), malformed, __doc__)
