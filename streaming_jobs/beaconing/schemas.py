"""The columns of beaconing."""

BEACONING = """
    host STRING,
    address STRING,
    first_call TIMESTAMP COMMENT 'of this host to this address, for a week at least',
    raised_at TIMESTAMP COMMENT 'the call that made it enough',
    calls BIGINT COMMENT 'from the first to that one',
    mean_gap DOUBLE COMMENT 'seconds between two calls',
    gap_deviation DOUBLE COMMENT 'standard deviation of the gaps, as a share of their mean; 0: a clock'
"""
