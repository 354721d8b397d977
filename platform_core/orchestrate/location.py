"""Everything declared, as one Dagster code location."""

from collections.abc import Iterator

import dagster as dg

from platform_core.orchestrate.candidates import candidate_checks, candidates_compared
from platform_core.orchestrate.changing import changing_jobs
from platform_core.orchestrate.daily import daily_definitions
from platform_core.orchestrate.expectations import suite_checks, suite_schedule
from platform_core.orchestrate.health import AS_DECLARED, CHECKS, HealthResult, as_declared
from platform_core.orchestrate.keys import live_key, topic_key
from platform_core.orchestrate.nodes import candidate_node, live_node, stream_table_node, topic_node
from platform_core.orchestrate.overview import overview_node, overview_told
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.quality import quality_followed
from platform_core.orchestrate.reloading import tree_changed
from platform_core.orchestrate.spark import spark_on_demand
from platform_core.orchestrate.state_reader import topic_ids
from platform_core.orchestrate.steering import steering_jobs
from platform_core.orchestrate.streams import evaluation, judged, stream_facts, stream_health, topics_seen
from platform_core.orchestrate.topics import ask


def location(platform: Platform) -> dg.Definitions:
    """One location: a check in another location's asset cannot be run from the web page."""
    return dg.Definitions.merge(
        dg.Definitions(
            assets=_nodes(platform),
            asset_checks=[
                *_health_checks(platform),
                *(candidate_checks(platform, job) for job in platform.jobs),
                _topics_check(platform),
            ],
            jobs=[*steering_jobs(platform), *changing_jobs(platform)],
            sensors=[
                stream_facts(platform),
                stream_health(platform),
                topics_seen(platform),
                candidates_compared(platform),
                overview_told(platform),
                quality_followed(platform),
                tree_changed(platform.settings),
            ],
            resources={"spark": spark_on_demand(platform.settings)},
            executor=dg.in_process_executor,  # a process for each step costs a start of 20 s and gains nothing
        ),
        *(daily_definitions(table, platform.settings) for table in platform.daily_tables.values()),
        *(
            dg.Definitions(asset_checks=[suite_checks(platform, suite)], schedules=[suite_schedule(platform, suite)])
            for suite in platform.suites.values()
        ),
    )


def _nodes(platform: Platform) -> list[dg.AssetSpec]:
    nodes = [overview_node()]
    nodes += [topic_node(topic, platform.writer_of(name)) for name, topic in sorted(platform.topics.items())]
    for job in platform.jobs.values():
        nodes += [live_node(job), candidate_node(job), stream_table_node(job)]
    return nodes


def _health_checks(platform: Platform) -> list[dg.AssetChecksDefinition]:
    return [_health_check(platform, name) for name in platform.jobs]


def _health_check(platform: Platform, job: str) -> dg.AssetChecksDefinition:
    """The sensor reports these; launched by hand they are looked at anew."""

    @dg.multi_asset_check(
        name=f"health_of_{job}",
        specs=[dg.AssetCheckSpec(name, asset=live_key(job), description=about) for name, about in CHECKS.items()],
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted = {key.name for key in context.selected_asset_check_keys}
        for verdict in judged(platform)[job]:
            if verdict.check in wanted:
                yield _result(live_key(job), verdict)

    return check


def _topics_check(platform: Platform) -> dg.AssetChecksDefinition:
    about = "The topic is on the broker, is the one that releases were made for, and has the declared settings."

    @dg.multi_asset_check(
        name="topics_as_declared",
        specs=[dg.AssetCheckSpec(AS_DECLARED, asset=topic_key(name), description=about) for name in platform.topics],
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        broker, ids = ask(platform.settings, platform.topics), topic_ids(platform.store, platform.jobs)
        wanted = {key.asset_key for key in context.selected_asset_check_keys}
        for name, topic in platform.topics.items():
            if topic_key(name) in wanted:
                yield _result(topic_key(name), as_declared(topic, broker, ids.get(name, {})))

    return check


def _result(key: dg.AssetKey, verdict: HealthResult) -> dg.AssetCheckResult:
    told = evaluation(key, verdict)
    return dg.AssetCheckResult(
        passed=told.passed,
        asset_key=key,
        check_name=told.check_name,
        metadata=told.metadata,
        severity=told.severity,
        description=told.description,
    )
