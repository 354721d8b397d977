"""What the broker is asked of topics, where its answers do not agree with each other."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from platform_core.broker import Broker as Asked
from platform_core.services.process import until
from tests.conftest import Broker

pytestmark = pytest.mark.stack


class Deleting:
    """A client between whose two questions a topic is deleted."""

    def __init__(self, client: Any, topic: str) -> None:
        self._client, self._topic = client, topic

    def describe_topics(self, *asked: Any, **how: Any) -> Any:
        return self._client.describe_topics(*asked, **how)

    def describe_configs(self, resources: list[Any], **how: Any) -> dict[Any, Future[Any]]:
        kept = self._client.describe_configs([one for one in resources if one.name != self._topic], **how)
        gone: Future[Any] = Future()
        gone.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return {**kept, **{one: gone for one in resources if one.name == self._topic}}


def test_a_topic_that_is_deleted_while_it_is_described_is_none(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, deleted = broker.create("kept-beside"), broker.create("deleted-meanwhile")
    asked = Asked(broker.settings)
    assert until(lambda: asked.topics([kept, deleted]).keys() == {kept, deleted}, 60)
    monkeypatch.setattr(asked, "_admin", Deleting(asked._admin, deleted))  # pyright: ignore[reportPrivateUsage]
    assert asked.topics([kept, deleted]).keys() == {kept}
