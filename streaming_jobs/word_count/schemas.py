"""The columns of word_count."""

WORD_COUNT = """
    word STRING COMMENT 'in lower case',
    count BIGINT COMMENT 'how often it has come so far'
"""
