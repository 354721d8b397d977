"""Spark's offsets and commits, as files."""
