"""A stream into files, a stream into a broker and a compaction, killed together: SIGKILL to the driver, its JVM and its
workers while each of the three is inside a batch. Then each goes on, with every message once.

One program does all three, for the start of a JVM takes most of the time. kills.py kills each stream many times, at
random points.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import require
from tests.conftest import StartBroker, TestBroker
from tests.pipeline.conftest import fill
from tests.pipeline.killed import run_until_stuck
from tests.pipeline.test_compact import compact, offsets
from tests.pipeline.test_sink import values
from tests.pipeline.test_stream import Query

# Three tasks wait to be killed, one after the other; a fourth processor is for what goes on beside them.
#
# files:   a stream that stops inside its second batch of 350, when it has read some of it.
# broker:  reads the archive of one broker in batches of 300, in two partitions each. In the first batch a task fails
#          half-way, and Spark runs it again; in the second one a task stops half-way. Both when a subscriber has got
#          some of what the task has let through: rows are long and batches short, for buffers.
# compact: stops inside its second set of 400, when some of the files are there.
STUCK = """
import sys, time
from pathlib import Path
import fanlight.sync
from pyspark import TaskContext
from fanlight_spark.jobs import compact
from fanlight_spark.session import local_session

work, at, source, url = sys.argv[1:]
settings = {
    "spark.local.dir": work, "spark.master": "local[4,2]", "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}
session = local_session("stuck", quick=True, settings=settings)

def stuck(name):
    Path(work, name, "stuck").touch()
    if name == "compact":  # the last one
        with open(work + "/reached", "w") as fifo:
            fifo.write("reached")
    time.sleep(600)

def until_stuck(name):
    query = queries[name]
    while not Path(work, name, "stuck").exists():
        query.awaitTermination(0.2)
        assert query.isActive, query.exception()

def started(frame, name, **options):
    writer = frame.writeStream.options(checkpointLocation=f"{work}/{name}/checkpoint", **options)
    queries[name] = writer.trigger(availableNow=True).format("parquet" if name == "files" else "fanlight").start()

def read(batches):
    for batch in batches:
        if int(at) in batch.column("offset").to_pylist():
            stuck("files")
        yield batch

def troubled(batches):
    with fanlight.sync.connect(url) as client, client.subscribe("#") as published:
        for batch in batches:
            first = int(batch.column("value")[0].as_py())
            if first == 200 and TaskContext.get().attemptNumber() == 0:
                while int(published.next(timeout=60).payload) < 150:
                    pass
                raise RuntimeError("a fault at 200")
            if first == 500:
                while int(published.next(timeout=60).payload) < 450:
                    pass
                stuck("broker")
            yield batch

def written(batches):
    for batch in batches:
        if 750 in batch.column("offset").to_pylist():
            stuck("compact")
        yield batch

queries = {}
reader = session.readStream.format("fanlight").option("startingOffsets", "earliest")
frame = reader.options(maxOffsetsPerTrigger=350, maxRecordsPerPartition=100).load(work + "/files/archive")
started(frame.mapInArrow(read, frame.schema), "files", path=work + "/files/out")
until_stuck("files")

frame = reader.options(url=source, maxOffsetsPerTrigger=300, maxRecordsPerPartition=150).load()
frame = frame.selectExpr("topic", "value", "repeat('x', 4000) AS correlation")
started(frame.mapInArrow(troubled, frame.schema), "broker", url=url)
until_stuck("broker")

write = compact.write

def half(placed, folder):
    ready = placed.where("offset < 500").write.partitionBy("date", "hour", "root")
    ready.parquet(str(folder))
    late = placed.mapInArrow(written, placed.schema).write.mode("append").partitionBy("date", "hour", "root")
    late.parquet(str(folder))

def turn(placed, folder, turns=[]):
    turns.append(folder)
    (write if len(turns) == 1 else half)(placed, folder)

compact.write = turn
compact.compact(session, Path(work, "compact", "archive"), Path(work, "compact", "out"), messages_max=400)
"""


@dataclass
class Killed:
    """What was killed: `work` has a folder for each of the three, and in it its archive."""

    work: Path
    source: TestBroker
    broker: TestBroker


@pytest.fixture(scope="module")
def killed(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    require.spark()
    work = tmp_path_factory.mktemp("killed")
    for name in ("files", "broker", "compact"):
        fill(work / name / "archive", 0, 1_000, roll=400)
    source = start_module_broker(archive=work / "broker" / "archive")
    broker = start_module_broker(archive=work / "broker" / "received", archive_receipts=True)
    at = random.randrange(350, 700)
    print("killed at", at)  # pytest shows it of a test that fails
    run_until_stuck(STUCK, work, at, source.url, broker.url, work=work)
    return Killed(work, source, broker)


def test_a_query_that_is_killed_inside_a_batch_reads_the_same_again_and_nothing_twice(
    spark: Any, killed: Killed
) -> None:
    """Between, more is written: the batch must not grow by it."""
    work = killed.work / "files"
    written = sorted((work / "checkpoint" / "offsets").glob("[0-9]*"))
    assert [path.name for path in written] == ["0", "1"]  # the second batch was begun,
    assert [path.name for path in (work / "checkpoint" / "commits").glob("[0-9]*")] == ["0"]  # and not ended

    fill(work / "archive", 1000, 200)
    query = Query(spark, work / "archive", work, maxOffsetsPerTrigger=1000)
    assert query.run() == [(350, 700), (700, 1200)]
    assert query.offsets() == list(range(1200))


def test_a_query_that_fails_and_is_killed_inside_a_batch_publishes_every_message_once(
    spark: Any, killed: Killed
) -> None:
    from fanlight_spark.broker import Address
    from fanlight_spark.remote import Remote

    received, broker = killed.work / "broker" / "received", killed.broker
    with Remote(Address(broker.url), "#", "amqp", 1):  # asks, and so waits until what was published is in the archive
        before = values(received)
    assert 300 < len(before) < 600
    assert max(before) >= 450
    assert len(set(before)) == len(before)
    same = {"url": killed.source.url, "maxRecordsPerPartition": 150}  # partitions: a row's mark is its place in one
    frame = spark.readStream.format("fanlight").options(**same).load().select("topic", "value")
    query = (
        frame.writeStream.format("fanlight")
        .options(url=broker.url, checkpointLocation=str(killed.work / "broker" / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(values(received)) == list(range(1000))


def test_a_compaction_that_is_killed_in_the_middle_is_repeated_without_a_loss_or_a_double(
    spark: Any, killed: Killed
) -> None:
    """It is killed while one set is published and the next is half written."""
    from fanlight_spark.jobs import filesets

    folder, out = killed.work / "compact" / "archive", killed.work / "compact" / "out"
    manifest = filesets.load(out)
    assert manifest is not None
    assert [(one.first, one.end) for one in manifest.sets] == [(0, 400)]
    (half,) = (out / "messages").glob("_*")
    assert list(half.rglob("*.parquet"))  # some of the next are there, and nobody reads them
    assert offsets(spark, out) == list(range(400))
    assert compact(spark, folder, out) == [(400, 800)]
    assert offsets(spark, out) == list(range(800))
    assert not half.exists()
