"""Made-up records for the jobs: the same for the same seed, with faults at given shares.

What is sent (a module a kind, named in `kinds`; `faults`) is pure; `sender` takes it to a broker.
"""
