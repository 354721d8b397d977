"""What needs a person, decided from what was seen. Five verdicts a job; each is an asset check on its live release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from platform_core.control.services import SILENT_SECONDS
from platform_core.declare import Topic
from platform_core.orchestrate.observed_state import ObservedBroker, ObservedDriver, ObservedRelease, ObservedSupervisor
from platform_core.release.topics import differences

STARTING_SECONDS = 60.0  # a Spark session with its first batch takes 15-40 s on two busy cores
STUCK_SECONDS = 120.0  # no batch while there is work; a first one took 80 s on an overloaded machine
HEARTBEAT_SECONDS = SILENT_SECONDS
STUCK_BATCHES = 5
LAG_FLOOR = 10_000  # fewer records behind are no matter: a second's work
LAG_GROWTH = 1.2  # over the remembered minutes; below it is noise of batches
REJECT_WARNING = 0.1  # of the share at which the job would stop

CHECKS: Mapping[str, str] = {
    "driver_alive": "A driver holds the lease and moves on while there is work, if the release is wanted to run.",
    "lag_bounded": "The broker answers, and the release does not fall further and further behind.",
    "rejects_bounded": "Few of the records of the last minutes were rejected.",
    "supervised": "The supervisor has sent a heartbeat within the last half minute.",
    "accounted": "In every batch, records delivered = used + rejected + late + filtered.",
}
AS_DECLARED = "as_declared"


@dataclass(frozen=True)
class HealthResult:
    check: str
    passed: bool
    says: str
    grave: bool = True  # a failed one that is not grave is a warning
    numbers: Mapping[str, int | float] = field(default_factory=dict[str, int | float])

    @property
    def summary(self) -> str:
        """What makes a verdict news: whether it holds, and why not. That a number in it has changed is none."""
        why = re.sub(r"[0-9.]+", "", self.says)
        return "passed" if self.passed else f"{'error' if self.grave else 'warning'}: {why}"


def verdicts(
    release: ObservedRelease | None,
    behind: int | None,
    broker: ObservedBroker,
    supervisor: ObservedSupervisor,
    reject_limit: float,
) -> list[HealthResult]:
    overseen = supervised(supervisor)
    if supervisor.trouble:
        return [overseen]  # of the others nothing is known
    if release is None:
        return [overseen, *(HealthResult(name, True, "never started") for name in CHECKS if name != overseen.check)]
    return [
        driver_alive(release, behind),
        lag_bounded(release, behind, broker),
        rejects_bounded(release, reject_limit),
        accounted(release),
        overseen,
    ]


def driver_alive(release: ObservedRelease, behind: int | None) -> HealthResult:
    driver, asked = release.driver, f"{release.wanted or 'nothing'} as asked by {release.wanted_by or 'nobody'}"
    if release.wanted != "run":
        return HealthResult("driver_alive", True, asked)
    if driver is not None and driver.state == "failed":
        return HealthResult("driver_alive", False, _failed(release, driver))
    if not release.runs:
        young = release.wanted_age < STARTING_SECONDS and (driver is None or driver.failures == 0)
        return HealthResult("driver_alive", young, "starting" if young else _dead(release))
    return _at_work(release, driver or ObservedDriver("starting", lease_alive=True), behind)


def _at_work(release: ObservedRelease, driver: ObservedDriver, behind: int | None) -> HealthResult:
    numbers = {"restarts": driver.failures}
    if driver.state == "waiting":
        return HealthResult("driver_alive", False, f"{release.name} waits: {driver.reason}", False, numbers)
    if driver.failures:
        says = (
            f"{release.name} is {driver.state} again after {driver.failures} failures in a row. {driver.reason}".strip()
        )
        return HealthResult("driver_alive", False, says, False, numbers)
    idle = min([driver.age, *(batch.age for batch in release.batches)])
    if behind and driver.state == "running" and idle > _patience(release):
        says = f"{release.name} is stuck: no batch for {idle:.0f} s while records wait. See its log, then restart it."
        return HealthResult("driver_alive", False, says, True, {**numbers, "behind": behind})
    return HealthResult("driver_alive", True, driver.state, True, numbers)


def _patience(release: ObservedRelease) -> float:
    """Some batches' time, where they take long: a busy machine is no stuck driver."""
    return max([STUCK_SECONDS, *(STUCK_BATCHES * batch.facts.batch_seconds for batch in release.batches)])


def _failed(release: ObservedRelease, driver: ObservedDriver) -> str:
    until = "stays stopped" if driver.given_up else "failed and is tried again"
    return f"{release.name} {until}; {driver.failures} failures in a row: {driver.reason} Correct it, then restart."


def _dead(release: ObservedRelease) -> str:
    driver = release.driver
    if driver is None:
        return f"{release.name} is wanted to run and no driver ever began."
    last = f"It had been {driver.state} for {driver.age:.0f} s. {driver.reason}".strip()
    return f"{release.name} is wanted to run and no driver holds its lease. {last}"


def lag_bounded(release: ObservedRelease, behind: int | None, broker: ObservedBroker) -> HealthResult:
    if broker.trouble:
        return HealthResult("lag_bounded", False, f"The broker does not answer: {broker.trouble}")
    numbers = {"behind": behind or 0}
    if release.wanted != "run" or behind is None or behind <= LAG_FLOOR:
        return HealthResult("lag_bounded", True, f"{behind or 0} records behind", True, numbers)
    oldest = release.batches[0].facts.total_lag if release.batches else 0
    if behind > LAG_GROWTH * oldest:
        says = f"{release.name} falls behind: {behind} records, {oldest} some minutes ago."
        return HealthResult("lag_bounded", False, says, False, {**numbers, "before": oldest})
    return HealthResult("lag_bounded", True, f"{behind} records behind, not growing", True, numbers)


def rejects_bounded(release: ObservedRelease, limit: float) -> HealthResult:
    records = sum(batch.facts.records_in for batch in release.batches)
    rejected = sum(batch.facts.rejected for batch in release.batches)
    share = rejected / records if records else 0.0
    numbers = {"records": records, "rejected": rejected, "share": round(share, 4)}
    if share <= REJECT_WARNING * limit:
        return HealthResult("rejects_bounded", True, f"{rejected} of {records} records", True, numbers)
    says = f"{release.name} rejected {rejected} of {records} records of the last minutes; it stops at {limit:.0%}."
    return HealthResult("rejects_bounded", False, f"{says} Look at its rejects for reasons.", share >= limit, numbers)


def accounted(release: ObservedRelease) -> HealthResult:
    wrong = [batch for batch in release.batches if batch.facts.unaccounted]
    numbers = {"batches": len(release.batches), "unaccounted": sum(batch.facts.unaccounted for batch in wrong)}
    if not wrong:
        return HealthResult("accounted", True, f"{len(release.batches)} batches add up", True, numbers)
    first = wrong[0].facts
    says = (
        f"{release.name} batch {first.batch}: {first.records_in} records delivered, {first.used} used, "
        f"{first.rejected} rejected, {first.late} late, {first.filtered} filtered; {first.unaccounted} missing. "
        "Stop it, keep its log."
    )
    return HealthResult("accounted", False, says, True, numbers)


def supervised(supervisor: ObservedSupervisor) -> HealthResult:
    if supervisor.trouble:
        return HealthResult("supervised", False, f"The control store does not answer: {supervisor.trouble}")
    silent = supervisor.silent_for
    if silent is None or silent > HEARTBEAT_SECONDS:
        heard = "has never been heard of" if silent is None else f"was last heard of {silent:.0f} s ago"
        says = f"The supervisor {heard}: wanted states are not carried out, dead drivers stay dead. Run `weir up`."
        return HealthResult("supervised", False, says, True, {} if silent is None else {"silent_for": round(silent)})
    return HealthResult("supervised", True, "supervised", True, {"silent_for": round(silent, 1)})


def as_declared(topic: Topic, broker: ObservedBroker, ids: Mapping[str, str]) -> HealthResult:
    """`ids`: by release, the id of the topic that the release was made for."""
    there = broker.topics.get(topic.name)
    if broker.trouble:
        return HealthResult(AS_DECLARED, False, f"The broker does not answer: {broker.trouble}")
    if there is None:
        lost = ", ".join(sorted(ids))
        says = f"Gone from the broker; {lost} needs it." if lost else "Not on the broker yet: the first start makes it."
        return HealthResult(AS_DECLARED, False, says, grave=bool(lost))
    for release, known in ids.items():
        if known != there.facts.id:
            says = f"Made again under its name: {release} was made for topic id {known}, this one has {there.facts.id}."
            return HealthResult(
                AS_DECLARED, False, f"{says} Its offsets mean nothing to {release}; start a new release."
            )
    differ = differences(topic, there.facts)
    says = "; ".join((*differ.refused, *differ.told))
    return HealthResult(AS_DECLARED, not says, says or "as declared", grave=bool(differ.refused))
