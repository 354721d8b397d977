"""Every topic, declared once; jobs and generators import it from here."""

from __future__ import annotations

from platform_core.declare import Format, Topic

WORDCOUNT_INPUT = Topic(
    name="wordcount-input",
    format=Format.TEXT,
    value="line STRING COMMENT 'a line of text'",
    description="Lines of text; the key is ignored.",
)

WORDCOUNT_OUTPUT = Topic(
    name="wordcount-output",
    format=Format.TEXT,
    value="count STRING COMMENT 'how often so far, in decimal digits'",
    key="word",
    compacted=True,
    description="The newest count of every word.",
)

STOCKS = Topic(
    name="stocks",
    value="""
        type STRING NOT NULL COMMENT 'ASK or BID',
        ticker STRING NOT NULL,
        price DECIMAL(18,6) NOT NULL,
        size BIGINT COMMENT 'shares'
    """,
    key="ticker",
    description="Asks and bids, stamped with the time of the trade.",
)

STOCKSTATS_OUTPUT = Topic(
    name="stockstats-output",
    value="""
        ticker STRING,
        window_start TIMESTAMP,
        window_end TIMESTAMP,
        trade_count BIGINT,
        sum_price DECIMAL(28,6),
        min_price DECIMAL(18,6),
        avg_price DECIMAL(18,6)
    """,
    key="ticker and window_start, as JSON",
    retention="7 days",
    description="A window's statistics each time they have changed; the newest record of a key is the one that counts.",
)

PAGE_VIEWS = Topic(
    name="clicks.pages.views",
    value="user_id BIGINT NOT NULL, page STRING NOT NULL",
    key="user_id",
    personal=("user_id", "page"),
    description="Which user looked at which page.",
)

SEARCHES = Topic(
    name="clicks.search",
    value="user_id BIGINT NOT NULL, search_terms STRING NOT NULL",
    key="user_id",
    personal=("user_id", "search_terms"),
    description="Which user searched for what.",
)

# Never compacted: a view is joined with the profile of its own moment, in a replay next month too.
USER_PROFILES = Topic(
    name="clicks.user.profile",
    value="user_id BIGINT NOT NULL, user_name STRING, zipcode STRING, interests ARRAY<STRING>",
    key="user_id",
    tombstones=True,
    personal=("user_id", "user_name", "zipcode", "interests"),
    description="A user's profile from now on; a tombstone deletes it.",
)

USER_ACTIVITY = Topic(
    name="clicks.user.activity",
    value="""
        view_id STRING,
        user_id BIGINT,
        user_name STRING,
        zipcode STRING,
        interests ARRAY<STRING>,
        search_terms STRING,
        page STRING,
        viewed_at TIMESTAMP,
        searched_at TIMESTAMP
    """,
    key="user_id",
    retention="30 days",
    personal=("user_id", "user_name", "zipcode", "interests", "search_terms", "page"),
    description="Views with the search that led to them and the profile of their moment.",
)

LOGS = Topic(
    name="logs",
    value="level STRING NOT NULL COMMENT 'TRACE to FATAL', service STRING NOT NULL, message STRING NOT NULL",
    key="service",
    retention="7 days",
    description="Log lines of services, stamped with the time of the event.",
)

_ROUTED = "level STRING, service STRING, message STRING, logged_at TIMESTAMP"

LOGS_HIGH = Topic(
    name="logs.high",
    value=_ROUTED,
    key="service",
    retention="30 days",
    description="Log lines of level ERROR and FATAL.",
)

LOGS_LOW = Topic(
    name="logs.low",
    value=_ROUTED,
    key="service",
    retention="2 days",
    description="All other log lines.",
)

HEARTBEATS = Topic(
    name="device.heartbeats",
    value="""
        device_id STRING NOT NULL,
        status STRING NOT NULL COMMENT 'UP or DOWN',
        at TIMESTAMP NOT NULL COMMENT 'when the device made it'
    """,
    key="device_id",
    event_time="at",
    description="What devices say of themselves; stamped when it arrives, which may be hours after it was made.",
)

RESULT_CLICKS = Topic(
    name="search.clicks",
    value="user_id BIGINT NOT NULL, result STRING NOT NULL",
    key="user_id",
    personal=("user_id", "result"),
    description="Which user clicked on which result of a search.",
)

LOGINS = Topic(
    name="logins",
    value="""
        user_id STRING NOT NULL,
        address STRING COMMENT 'where it was tried from',
        succeeded BOOLEAN NOT NULL
    """,
    key="user_id",
    personal=("user_id", "address"),
    description="Logins that were tried, stamped with the time of the attempt.",
)

LOGIN_ALERTS = Topic(
    name="logins.alerts",
    value="user_id STRING, began_at TIMESTAMP, first_failure TIMESTAMP, failures BIGINT",
    key="user_id",
    retention="30 days",
    personal=("user_id",),
    description="Bursts of failed logins, one record for each.",
)

CONNECTIONS = Topic(
    name="connections",
    value="host STRING NOT NULL, address STRING NOT NULL, bytes BIGINT COMMENT 'that were sent'",
    key="host",
    personal=("host", "address"),
    description="Which host opened a connection to which address, stamped with the time of its beginning.",
)

MACHINE_READINGS = Topic(
    name="machine.readings",
    value="""
        machine STRING NOT NULL,
        temperature DOUBLE NOT NULL COMMENT 'in degrees Celsius',
        failed BOOLEAN NOT NULL COMMENT 'whether the machine reports a failure'
    """,
    key="machine",
    description="What a machine's sensor says, stamped with the time of the reading.",
)
