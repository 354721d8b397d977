"""The author's function as one Spark plan."""
