from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Broker, Database

pytestmark = pytest.mark.stack


def test_a_record_goes_through_the_broker(broker: Broker) -> None:
    topic = broker.create("services-round-trip")
    broker.produce(topic, (b"k", b"v"), at=1000)
    (message,) = broker.consume(topic, 1)
    assert (message.key(), message.value(), message.timestamp()[1]) == (b"k", b"v", 1000)


def test_a_topic_is_not_made_by_asking_for_it(broker: Broker) -> None:
    assert "services-unknown" not in broker.admin.list_topics("services-unknown", timeout=5).topics or (
        broker.admin.list_topics("services-unknown", timeout=5).topics["services-unknown"].error is not None
    )


def test_postgres_holds_both_databases(postgres: Database) -> None:
    with postgres.connect() as link:
        names = {row[0] for row in link.execute("select datname from pg_database").fetchall()}
    assert {"weir", "dagster"} <= names


def test_postgres_refuses_a_wrong_password(postgres: Database) -> None:
    where = postgres.settings.postgres
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host=where.host, port=where.port, user=where.user, password="wrong", dbname="weir")


def test_the_password_is_readable_by_its_owner_alone(postgres: Database) -> None:
    assert (postgres.settings.home / "postgres.password").stat().st_mode & 0o777 == 0o600
