"""How often every word has come, for ever.

What a Kafka Streams user may expect otherwise:
- Words are split Unicode-aware, `été naïve` is two words; Java's plain `\\W+` would tear them apart.
- A changed count is written once a batch, not once a record: counts in between are never seen. Kafka Streams' record
  cache does the like, by size and commit interval.
- Counting has no event time, so that no line is late.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import WORDCOUNT_INPUT, WORDCOUNT_OUTPUT
from platform_core.declare import Buckets, Publish, Stream, StreamingJob, Table, Text
from streaming_jobs.word_count.schemas import WORD_COUNT

WORD = r"(?U)\w+"  # U: letters, marks and digits of all scripts
IGNORED = "the"


def count_words(lines: DataFrame) -> DataFrame:
    found = F.regexp_extract_all(F.lower("line"), F.lit(WORD), F.lit(0))
    words = lines.select(F.explode(found).alias("word"))
    return words.where(F.col("word") != IGNORED).groupBy("word").count()


word_count = StreamingJob(
    name="word_count",
    inputs={"lines": Stream(WORDCOUNT_INPUT)},
    transform=count_words,
    output=Table(
        name="word_count",
        schema=WORD_COUNT,
        key=("word",),
        layout=Buckets("word"),
        description="How often every word has come so far.",
    ),
    publish=Publish(WORDCOUNT_OUTPUT, key=Text("word"), value=Text("count")),
    description="Counts the words of all lines.",
)
