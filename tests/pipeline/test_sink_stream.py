"""A stream from a broker's archive to a broker, by source and sink `fanlight`: failed, killed, started again."""

from pathlib import Path
from typing import Any

from tests.conftest import StartBroker
from tests.pipeline.killed import run_until_stuck
from tests.pipeline.test_sink import values

# Reads the archive of one broker in batches of 300, in two partitions each. In the first batch a task fails half-way,
# and Spark runs it again; in the second one a task stops half-way for ever: it says so, and waits to be killed. Both
# when a subscriber has got some of what the task has let through: rows are long and batches short, for buffers.
STUCK = """
import sys, time
import fanlight.sync
from pyspark import TaskContext
from fanlight_spark.session import local_session

archive, work, url = sys.argv[1:]  # the addresses of two brokers, and a folder between them
settings = {
    "spark.local.dir": work, "spark.master": "local[2,2]", "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}
session = local_session("stuck", quick=True, settings=settings)

def troubled(batches):
    with fanlight.sync.connect(url) as client, client.subscribe("#") as published:
        for batch in batches:
            for at in range(0, batch.num_rows, 25):
                first = int(batch.column("value")[at].as_py())
                if first == 200 and TaskContext.get().attemptNumber() == 0:
                    while int(published.next(timeout=60).payload) < 150:
                        pass
                    raise RuntimeError("a fault at 200")
                if first == 500:
                    while int(published.next(timeout=60).payload) < 450:
                        pass
                    with open(work + "/reached", "w") as fifo:
                        fifo.write("reached")
                    time.sleep(600)
                yield batch.slice(at, 25)

frame = (
    session.readStream.format("fanlight")
    .options(url=archive, startingOffsets="earliest", maxOffsetsPerTrigger=300, maxRecordsPerPartition=150)
    .load()
    .selectExpr("topic", "value", "repeat('x', 4000) AS correlation")
)
query = (
    frame.mapInArrow(troubled, frame.schema)
    .writeStream.format("fanlight")
    .options(url=url, checkpointLocation=work + "/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
"""


def test_a_query_that_fails_and_is_killed_inside_a_batch_publishes_every_message_once(
    spark: Any, start_broker: StartBroker, folder: Path, tmp_path: Path
) -> None:
    from fanlight_spark.broker import Address
    from fanlight_spark.remote import Remote

    received = tmp_path / "received"
    source, broker = start_broker(archive=folder), start_broker(archive=received, archive_receipts=True)
    run_until_stuck(STUCK, source.url, tmp_path, broker.url, work=tmp_path)
    with Remote(Address(broker.url), "#", "amqp", 1):  # asks, and so waits until what was published is in the archive
        before = values(received)
    assert 300 < len(before) < 600
    assert max(before) >= 450
    assert len(set(before)) == len(before)
    same = {"url": source.url, "maxRecordsPerPartition": 150}  # partitions: a row's mark is its place in one
    frame = spark.readStream.format("fanlight").options(**same).load().select("topic", "value")
    query = (
        frame.writeStream.format("fanlight")
        .options(url=broker.url, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(values(received)) == list(range(1000))
