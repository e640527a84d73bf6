"""The pipeline over Spark Connect: `python -m tests.pipeline.connect`, after `pip install 'pyspark[connect]'`.

Starts a server of Spark Connect on the loopback interface, and uses the source, the matcher, the functions of SQL, a
stream and the sink over it. Prints a line for each; exit code 1 if one fails. It is no test of `make test`: a second
JVM with its server takes longer than all it would show.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fanlight_bench.launch import Broker
from tests.pipeline.conftest import fill

ROWS = 1_000
DECODERS = '[[decoder]]\ntable = "numbers"\nfilter = "stock.#"\nformat = "text"\nfields = { number = "string" }\n'


def session() -> Any:
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    from pyspark.sql import SparkSession

    import fanlight_spark
    from fanlight_spark.session import configure

    builder: Any = SparkSession.builder
    for name, value in {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.python.authenticate.socketTimeout": "180s",
    }.items():  # fmt: skip
        builder = builder.config(name, value)
    return fanlight_spark.register(configure(builder.remote("local[2]")).getOrCreate())


def checks(spark: Any, folder: Path, work: Path, url: str) -> dict[str, tuple[Callable[[], Any], Any]]:
    """What is done, and what it has to give."""
    from fanlight_spark import decode
    from fanlight_spark.matching import match_topics, topic_matches

    messages = spark.read.format("fanlight").load(str(folder))
    messages.createOrReplaceTempView("messages")
    wanted = spark.read.format("fanlight").options(filter="*.*.1", where="n > 990")
    many = [(f"stock.AAPL.{number}", number, "amqp") for number in range(60_000)]  # an index that workers map
    (work / "decoders.toml").write_text(DECODERS)

    def one(query: str) -> Any:
        return spark.sql(query).collect()[0][0]

    def table() -> Any:
        spark.sql(f"CREATE TABLE archived USING fanlight OPTIONS (path '{folder}')")
        return one("SELECT count(*) FROM archived")

    def stream() -> Any:
        frame = spark.readStream.format("fanlight").options(startingOffsets="earliest", maxOffsetsPerTrigger=300)
        writing = frame.load(str(folder)).writeStream.format("parquet")
        writing = writing.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True)
        writing.start(str(work / "out")).awaitTermination()
        return spark.read.parquet(str(work / "out")).count()

    def sink() -> Any:
        rows = messages.select("topic", "value", "syntax")
        rows.write.format("fanlight").option("url", url).mode("append").save()
        return spark.read.format("fanlight").option("url", url).load().count()

    return {
        "source": (messages.count, ROWS),
        "filter and where": (wanted.load(str(folder)).count, 2),
        "match_topics": (match_topics(messages, [("*.*.1", 2, "amqp")], syntax_col="syntax").count, 333),
        "match_topics, mapped": (match_topics(messages, many, syntax_col="syntax").count, ROWS),
        "topic_matches": (topic_matches(messages, [("stock.#", 1, "amqp")], syntax_col="syntax").count, 3),
        "decode": (decode(messages, work / "decoders.toml").count, ROWS),
        "SQL, topic_matches": (lambda: one("SELECT count(*) FROM messages WHERE topic_matches('*.*.1', topic)"), 333),
        "SQL, selector_matches": (
            lambda: one("SELECT count(*) FROM messages WHERE selector_matches('n > 990', map_from_entries(headers))"),
            5,
        ),
        "SQL, topic_word": (lambda: one("SELECT DISTINCT topic_word(topic, 2) FROM messages"), "AAPL"),
        "CREATE TABLE": (table, ROWS),
        "stream": (stream, ROWS),
        "sink, and source by url": (sink, ROWS),
    }


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        os.chdir(work)  # of the server, too, which makes its warehouse there
        fill(work / "archive", 0, ROWS, roll=400)
        broker = Broker(archive=work / "received")
        spark = session()
        try:
            for what, (do, expected) in checks(spark, work / "archive", work, broker.url).items():
                try:
                    found = do()
                except Exception:
                    found = traceback.format_exc(limit=1)
                failed += found != expected
                print(f"{'ok    ' if found == expected else 'FAILED'} {what}: {found}", flush=True)
        finally:
            spark.stop()
            broker.terminate()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
