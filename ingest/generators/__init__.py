"""Made-up records for the main jobs: the same for the same seed, with faults at given shares.

What is sent (`stocks`, `clicks`, `lines`, `faults`) is pure; `sender` takes it to a broker.
"""
