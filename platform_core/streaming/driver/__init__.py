"""The process of a release: what it may do, what it does by its role, and the query that it runs."""
