"""Everybody who reads two tables and their topics while releases change under them, and what each of them saw amiss.

A gap, a duplicate, a step back, a pair of tables of which one moved and the other not, an error: each is counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from platform_core.control import aliases
from platform_core.control.store import ControlStore
from platform_core.read import open_tables
from platform_core.settings import Settings

STATS, VIEWS = "stock_stats", "user_activity"
CLIENTS, DELTA_READERS, AT_ONCE = 1000, 20, 8
POLL_SECONDS = 2.0
A_VIEW = ("view_id", "searched_at", "search_terms")  # a view has a row for each search that led to it


@dataclass
class Seen:
    """By kind; asked for by several threads."""

    counts: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, example: object = "") -> None:
        with self._lock:
            self.counts[kind] += 1
            self.examples.setdefault(kind, str(example)[:300])

    def guarded(self, kind: str, act: Callable[[], Any]) -> Any:
        """None, and an error counted, where it raises: whatever a reader meets is what is measured."""
        try:
            return act()
        except Exception as error:
            self.count(f"{kind}: errors", repr(error))
            return None


class Watchers(AbstractContextManager["Watchers"]):
    """All of them at work, each in its thread, until the block ends."""

    def __init__(self, settings: Settings, topics: dict[str, str]) -> None:
        self._settings, self.seen, self._stopping = settings, Seen(), threading.Event()
        self._store = ControlStore.open(settings)
        self.topics = {name: TopicWatcher(settings, topic, name, self.seen) for name, topic in topics.items()}
        works = [self._clients, *[self._delta_reader] * DELTA_READERS, *(one.watch for one in self.topics.values())]
        self._threads = [threading.Thread(target=_politely, args=(work, self._stopping)) for work in works]

    def __enter__(self) -> Watchers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._store.close()

    def _clients(self, stopping: threading.Event) -> None:
        asyncio.run(self._poll(stopping))

    async def _poll(self, stopping: threading.Event) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            await asyncio.gather(*(self._client(pool, stopping) for _ in range(CLIENTS)))

    async def _client(self, pool: ThreadPoolExecutor, stopping: threading.Event) -> None:
        """Asks where its two tables stand; they were moved together, so they are of the same number."""
        loop, newest = asyncio.get_running_loop(), {STATS: 0.0, VIEWS: 0.0}
        while not stopping.is_set():
            found = await loop.run_in_executor(pool, self.seen.guarded, "clients", self._resolved)
            if found is not None:
                self.seen.count("clients: answers")
                if found[STATS].release.number != found[VIEWS].release.number:
                    self.seen.count("clients: mixed pairs", found)
                for name, alias in found.items():
                    if alias.since.timestamp() < newest[name]:
                        self.seen.count("clients: steps back", alias)
                    newest[name] = alias.since.timestamp()
            await asyncio.sleep(POLL_SECONDS)

    def _resolved(self) -> dict[str, aliases.Alias]:
        return aliases.resolve(self._store, [STATS, VIEWS])

    def _delta_reader(self, stopping: threading.Event) -> None:
        """Reads whole tables: totals never shrink, and no key is there twice."""
        totals = {STATS: 0, VIEWS: 0}
        while not stopping.wait(POLL_SECONDS):
            found = self.seen.guarded("Delta readers", self._read)
            for name, (total, doubled) in (found or {}).items():
                self.seen.count("Delta readers: answers")
                if total < totals[name]:
                    self.seen.count("Delta readers: steps back", f"{name}: {totals[name]}, then {total}")
                if doubled:
                    self.seen.count("Delta readers: duplicates", f"{name}: {doubled}")
                totals[name] = total

    def _read(self) -> dict[str, tuple[int, int]]:
        """By table: what only grows, and how many keys are there more than once."""
        tables = open_tables(self._settings, self._store)
        numbers = {table.release.number for name in (STATS, VIEWS) if (table := tables.table(name)).release}
        if len(numbers) > 1:
            self.seen.count("Delta readers: mixed pairs", numbers)
        stats = tables.table(STATS).arrow(["ticker", "window_start", "trade_count"])
        views = tables.table(VIEWS).arrow(list(A_VIEW))
        windows = stats.group_by(["ticker", "window_start"]).aggregate([("trade_count", "sum")])
        trades = sum(windows["trade_count_sum"].to_pylist())
        ids = views.group_by(list(A_VIEW)).aggregate([]).num_rows
        return {STATS: (trades, stats.num_rows - windows.num_rows), VIEWS: (views.num_rows, views.num_rows - ids)}


def _politely(work: Callable[[threading.Event], None], stopping: threading.Event) -> None:
    """Behind the platform, where the system gives each thread its own priority: they stand for other machines."""
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    work(stopping)


class TopicWatcher:
    """A read_committed consumer of an output topic, from its beginning."""

    def __init__(self, settings: Settings, topic: str, table: str, seen: Seen) -> None:
        self._settings, self._topic, self._table, self._seen = settings, topic, table, seen
        self.known: dict[Any, int] = {}  # key of a row -> its trades, or how often it came
        self.arrived = time.monotonic()

    def watch(self, stopping: threading.Event) -> None:
        quiet = {"enable.auto.commit": False, "group.id": f"watcher-{self._table}"}
        consumer = Consumer(
            {"bootstrap.servers": self._settings.kafka.servers, "isolation.level": "read_committed", **quiet}
        )
        try:
            parts = consumer.list_topics(self._topic, 20).topics[self._topic].partitions
            consumer.assign([TopicPartition(self._topic, part, 0) for part in parts])
            while not stopping.is_set():
                for message in consumer.consume(1000, 0.5):
                    if message.error():
                        self._seen.count("consumers: errors", message.error())
                    else:
                        self._take(json.loads(message.key() or b"null"), message.value())
        finally:
            consumer.close()

    def _take(self, key: Any, value: bytes | None) -> None:
        self.arrived = time.monotonic()
        self._seen.count("consumers: answers")
        row = None if value is None else json.loads(value)
        if self._table == VIEWS:
            name = tuple((row or {}).get(column) for column in A_VIEW)
            self.known[name] = self.known.get(name, 0) + 1
            if self.known[name] > 1:
                self._seen.count("consumers: duplicates", name)
            return
        window = (key["ticker"], key["window_start"])
        if row is None:
            self._seen.count("consumers: tombstones", window)
            self.known.pop(window, None)
            return
        if row["trade_count"] < self.known.get(window, 0):
            self._seen.count("consumers: steps back", f"{window}: {self.known[window]}, then {row['trade_count']}")
        self.known[window] = row["trade_count"]
