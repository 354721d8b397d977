"""`python -m tests.benchmarks.flood RATE SERVERS`: trades at a rate that a generator would need a core for.

Their values are rendered once and sent round and round; the broker stamps each as it is sent, until SIGTERM.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time

from confluent_kafka import Producer

from tests.benchmarks import preload

_RENDERED, _TICK_SECONDS = 100_000, 0.02


def main(rate: float, servers: str) -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    trades = itertools.cycle(list(preload.stocks(_RENDERED)))
    began, sent = time.monotonic(), 0
    while not told.wait(_TICK_SECONDS):
        due = int((time.monotonic() - began) * rate)
        for topic, key, value, _ in itertools.islice(trades, due - sent):
            producer.produce(topic, value, key)
        producer.poll(0)
        sent = due
    if producer.flush(60):
        raise SystemExit("The broker did not take all records within a minute.")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2])
