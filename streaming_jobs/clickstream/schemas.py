"""The columns of user_activity."""

USER_ACTIVITY = """
    view_id STRING COMMENT 'topic-partition-offset of the view',
    user_id BIGINT COMMENT '-1: no profile at that moment',
    user_name STRING,
    zipcode STRING,
    interests ARRAY<STRING> COMMENT 'null: no profile at that moment',
    search_terms STRING COMMENT 'empty: no search in the second before',
    page STRING,
    viewed_at TIMESTAMP,
    searched_at TIMESTAMP COMMENT 'null: no search in the second before'
"""
