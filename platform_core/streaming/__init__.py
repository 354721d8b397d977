"""A release at work: one driver process, one Spark query, one micro-batch after the other.

driver/       the process: its lease, its loop by role, the Spark session and query, the pace of the batches
source/       what a release reads: Kafka topics, their raw history, and how bytes become events
transform/    the author's function as one Spark plan, and what is checked of it before anything runs
batch/        one micro-batch from its rows to its commits, and its metrics
sink/         what a batch writes to, in order: rejects, lookups, the table, the output topic
checkpoint/   Spark's files, and batches that are planned there to end at a chosen position
replay/       from far behind to where the live release is, and after it
"""
