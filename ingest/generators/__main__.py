"""python -m ingest.generators KIND: made-up records, live or historic, to any broker."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections import abc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice, takewhile
from typing import NoReturn

from ingest.generators import clicks, lines
from ingest.generators.creation import TopicCreation
from ingest.generators.faults import Faults, Sent, sent
from ingest.generators.kinds import GENERATORS
from ingest.generators.records import GeneratedRecord, Generator
from ingest.generators.sender import Sender, Summary, missing_topics, paced
from platform_core.declare.durations import duration
from platform_core.errors import UsageError, WeirError
from platform_core.settings import load

EXAMPLES = """examples:
  weir generate stocks                                     live, 125 records a second, until ctrl-C
  weir generate stocks --rate 10000 --seconds 60           live, at another rate, for a minute
  weir generate clicks --start-ms 1735689600000 --records 1000000    history, as fast as it goes
  weir generate lines --bootstrap kafka:9092 --set security.protocol=SSL --create-topics
  weir generate stocks --late 0.01 --duplicated 0.01 --malformed 0.001 --far-future 0.001

The same kind, seed, rate and start give the same records, byte by byte, whatever the shares of faults.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        asked = parser().parse_args(arguments)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    summary = Summary()
    try:
        generator = chosen(asked)
        with _stopped_by_signals() as stop:
            generate(generator, asked, summary, stop)
    except WeirError as error:
        print(_failure(error) if asked.json else f"error: {asked.kind}: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        if summary.total:
            print(told(asked.kind, summary, as_json=asked.json), flush=True)
    return 0


@contextmanager
def _stopped_by_signals() -> abc.Generator[threading.Event]:
    """What was caught before is caught again afterwards: who calls this may have more to do."""
    stop = threading.Event()
    former = {one: signal.signal(one, lambda *_: stop.set()) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


def _failure(error: WeirError) -> str:
    told = {"error": type(error).__name__, "what": error.what, "remedy": error.remedy, "exit": error.exit_code}
    return json.dumps(told, ensure_ascii=False)


def generate(generator: Generator, asked: argparse.Namespace, summary: Summary, stop: threading.Event) -> None:
    live = asked.start_ms is None
    if not live and asked.records is None and asked.seconds is None:
        raise UsageError("History without an end.", remedy="Say how much: --records or --seconds.")
    stream = planned(generator, asked, int(time.time() * 1000) if live else asked.start_ms)
    servers, client = broker(asked)
    provide_topics(generator, servers, client, create=asked.create_topics)
    sender = Sender(servers, client, stop.is_set, live=live)

    def wait(seconds: float) -> bool:
        sender.look()
        return stop.wait(seconds)

    sender.send(paced(stream, wait, summary) if live else stream, summary)


def planned(generator: Generator, asked: argparse.Namespace, start_ms: int) -> Iterator[Sent]:
    """What will be sent, in order; lengths count sound records, before any is doubled."""
    if asked.rate is not None and asked.rate <= 0:
        raise UsageError(f"--rate: {asked.rate:g}.", remedy="Give records a second, more than 0.")
    made: Iterator[GeneratedRecord] = generator.records(asked.seed, start_ms, asked.rate or generator.rate)
    if asked.seconds is not None:
        end_ms = start_ms + asked.seconds * 1000
        made = takewhile(lambda record: record.timestamp_ms < end_ms, made)
    faults = Faults(asked.late, asked.duplicated, asked.malformed, asked.far_future)
    late_by, future_by = _ms(asked.late_by, "--late-by"), _ms(asked.future_by, "--future-by")
    return sent(islice(made, asked.records), faults, asked.seed, generator.malformed, late_by, future_by)


def chosen(asked: argparse.Namespace) -> Generator:
    if asked.kind == "clicks":
        return clicks.of_users(asked.users)
    return lines.of_words(asked.vocabulary) if asked.kind == "lines" else GENERATORS[asked.kind]


def broker(asked: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Address and client settings: as given, or else the profile's."""
    given = dict(_setting(text) for text in asked.set)
    if asked.bootstrap is not None:
        return asked.bootstrap, given
    kafka = load().kafka
    return kafka.servers, {**kafka.client, **given}


def provide_topics(generator: Generator, servers: str, client: dict[str, str], *, create: bool) -> None:
    topics = TopicCreation(servers, client)
    missing = topics.missing(generator.topics)
    if missing and not create:
        raise missing_topics(servers, [topic.name for topic in missing])
    if missing:
        topics.create(missing)


def told(kind: str, summary: Summary, *, as_json: bool) -> str:
    topics = {name: summary.of(name) for name in sorted({topic for topic, _ in summary.counts})}
    if as_json:
        numbers = {"seconds": round(summary.seconds, 3), "behind_ms": round(summary.behind_ms)}
        return json.dumps({"kind": kind, "topics": topics, **numbers})
    rate = summary.total / max(summary.seconds, 0.001)
    parts = "; ".join(f"{name} {_counted(counts)}" for name, counts in topics.items())
    return f"{kind}: {parts}; in {summary.seconds:.1f} s, {rate:,.0f}/s, at most {summary.behind_ms:.0f} ms behind"


def _counted(counts: dict[str, int]) -> str:
    faults = [f"{n} {name.replace('_', '-')}" for name, n in counts.items() if name != "sent"]
    return f"{counts['sent']} sent" + (f", of them {', '.join(faults)}" if faults else "")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--set: {text!r}.", remedy="Write name=value, as in security.protocol=SSL.")
    return name, value


def _ms(text: str, field: str) -> int:
    return duration(text, field) // timedelta(milliseconds=1)


class Words(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}.", remedy=f"See `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    whole = Words("weir generate", description=__doc__, epilog=EXAMPLES, formatter_class=shape)
    kinds = whole.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, generator in GENERATORS.items():
        kind = kinds.add_parser(name, help=generator.about, description=generator.about)
        _add_options(kind, generator.rate)
        if name == "clicks":
            kind.add_argument("--users", type=int, default=clicks.USERS, help="how many there are (%(default)s)")
        if name == "lines":
            kind.add_argument("--vocabulary", type=int, default=lines.VOCABULARY, help="different words (%(default)s)")
    return whole


def _add_options(kind: argparse.ArgumentParser, rate: float) -> None:
    add = kind.add_argument
    add("--seed", type=int, default=1, help="the same seed gives the same records (%(default)s)")
    add("--rate", type=float, help=f"records a second of event time ({rate:g})")
    add("--records", type=int, help="how many (no end)")
    add("--seconds", type=float, help="for how long, in event time (no end)")
    add("--start-ms", type=int, help="history from this time on, as fast as it goes (live, from now on)")
    for fault, what in (
        ("late", "stamped --late-by before their turn"),
        ("duplicated", "sent twice"),
        ("malformed", "with a value that nobody can read"),
        ("far-future", "stamped --future-by after their turn"),
    ):
        add(f"--{fault}", type=float, default=0.0, metavar="SHARE", help=f"share of records {what} (0)")
    add("--late-by", default="30 seconds", help="(%(default)s)")
    add("--future-by", default="3650 days", help="(%(default)s)")
    add("--bootstrap", metavar="HOST:PORT", help="the broker (the profile's)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a client setting of librdkafka, repeatable")
    add("--create-topics", action="store_true", help="create missing topics as they are declared")
    add("--json", action="store_true", help="the summary as one JSON object")


if __name__ == "__main__":
    sys.exit(main())
