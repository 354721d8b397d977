"""Each verb once: what it checks, resolves and waits for. The command line and Dagster's jobs parse, call and show."""
