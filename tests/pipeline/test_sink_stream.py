"""A stream from a broker's archive to a broker, by source and sink `fanlight`: failed, killed, started again."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import StartBroker
from tests.pipeline.test_sink import values

# Reads the archive of one broker in batches of 300, in two partitions each. In the first batch a task fails half-way,
# and Spark runs it again; in the second one a task stops half-way for ever: it says so, and waits to be killed. Both
# when a subscriber has got some of what the task has let through: rows are long and batches short, for buffers.
STUCK = """
import sys, time
import fanlight.sync
from pyspark import TaskContext
from pipeline.session import local_session

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


def run_until_stuck(archive: str, work: Path, url: str) -> None:
    """Run that query until it is stuck, then kill its driver, its JVM and its workers."""
    os.mkfifo(work / "reached")
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", STUCK, archive, str(work), url],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
    reached = os.open(work / "reached", os.O_RDONLY | os.O_NONBLOCK)
    try:
        ready, _, _ = select.select([reached], [], [], 240)  # it ends, too, when the last writer has gone
        assert ready, (work / "log").read_text(errors="replace")[-4000:]
        assert os.read(reached, 100) == b"reached"
    finally:
        os.close(reached)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_query_that_fails_and_is_killed_inside_a_batch_publishes_every_message_once(
    spark: Any, start_broker: StartBroker, folder: Path, tmp_path: Path
) -> None:
    received = tmp_path / "received"
    source, broker = start_broker(archive=folder), start_broker(archive=received, archive_receipts=True)
    run_until_stuck(source.url, tmp_path, broker.url)
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
