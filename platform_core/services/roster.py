"""The services that a profile has the platform start, and those that it says are elsewhere."""

from __future__ import annotations

from dataclasses import replace

from platform_core.services import dagster, kafka, postgres
from platform_core.services.service import Service
from platform_core.services.supervisor import supervisor
from platform_core.settings import Settings


def managed(settings: Settings) -> list[Service]:
    chosen: list[Service] = []
    if settings.postgres.managed:
        chosen.append(postgres.server(settings))
    if settings.kafka.managed:
        chosen.append(kafka.broker(settings))
    chosen.append(supervisor(settings))
    if settings.dagster.managed:
        chosen += dagster.servers(settings)
    names = {service.name for service in chosen}
    return [replace(one, needs=tuple(name for name in one.needs if name in names)) for one in chosen]


def addresses(settings: Settings) -> dict[str, str]:
    """Where each answers, managed or not."""
    web = f"http://127.0.0.1:{settings.dagster.port}"
    where = {
        "postgres": f"{settings.postgres.host}:{settings.postgres.port}",
        "kafka": settings.kafka.servers,
    }
    return where | ({"dagster-web": web} if settings.dagster.managed else {})


def external(settings: Settings) -> list[str]:
    return [name for name, own in (("postgres", settings.postgres), ("kafka", settings.kafka)) if not own.managed]
