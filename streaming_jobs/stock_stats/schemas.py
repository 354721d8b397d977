"""The columns of stock_stats."""

STOCK_STATS = """
    ticker STRING,
    window_start TIMESTAMP COMMENT 'inclusive',
    window_end TIMESTAMP COMMENT 'exclusive',
    trade_count BIGINT COMMENT 'asks in the window',
    sum_price DECIMAL(28,6) COMMENT 'the sum of their prices',
    min_price DECIMAL(18,6) COMMENT 'the lowest ask',
    avg_price DECIMAL(18,6) COMMENT 'sum_price / trade_count, rounded half up'
"""
