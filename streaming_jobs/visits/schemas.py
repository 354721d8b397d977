"""The columns of visits."""

VISITS = """
    user_id BIGINT,
    started_at TIMESTAMP COMMENT 'the first view',
    ended_at TIMESTAMP COMMENT 'the last view; of a visit of one view it is the first, too',
    views BIGINT COMMENT 'one at least',
    first_page STRING,
    last_page STRING
"""
