"""One micro-batch, from its rows to its commits."""
