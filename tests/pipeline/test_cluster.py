"""Two executors in processes of their own, `local-cluster[2,1,1024]`: what the driver has must reach them.

A program with a Spark of its own, which starts three JVMs: a release is tested with it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import require
from tests.pipeline.conftest import fill
from tests.pipeline.killed import STUCK_SECONDS, environment

DECODERS = """
[[decoder]]
table = "numbers"
filter = "stock.#"
format = "text"
words = { kind = 2, number = 3 }

[decoder.fields]
text = "string"
"""
# The source with a filter, with decoders, `decode` of a DataFrame, SQL, and an index that workers map.
PROGRAM = """
import json, os, shutil, sys
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession
from fanlight_spark.matching import match_topics
from fanlight_spark.session import configure, register
from fanlight_spark.tables import decode

archive, decoders, work = sys.argv[1:]
builder = configure(SparkSession.builder.master("local-cluster[2,1,1024]").appName("cluster"))
settings = {
    "spark.executor.memory": "512m", "spark.ui.enabled": "false", "spark.local.dir": work,
    "spark.sql.shuffle.partitions": "2", "spark.python.authenticate.socketTimeout": "180s",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.cores.max": "2",
    # Both executors are there before the first task.
    "spark.scheduler.minRegisteredResourcesRatio": "1", "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
}
for name, value in settings.items():
    builder = builder.config(name, value)
spark = register(builder.getOrCreate())
# Executors have their folders below Spark's own, wherever spark.local.dir is.
folders = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
def read(**options):
    return spark.read.format("fanlight").options(maxRecordsPerPartition=100, **options).load(archive)

messages = read()
many = [(f"other.{number}.x", number, "amqp") for number in range(20_000)]
many += [("stock.*.1", 20_000, "amqp"), ("stock.#", 20_001, "amqp")]
try:
    found = {
        "executors": messages.rdd.map(lambda _: os.getppid()).distinct().count(),
        "filtered": read(filter="stock.*.1").count(),
        "decoders": read(decoders=decoders).where("_problem IS NULL").count(),
        "decode": decode(messages, decoders).where("number = '2'").count(),
        "matched": dict(match_topics(messages, many).groupBy("subscription").count().collect()),
        "sql": messages.where("topic_matches('stock.*.0', topic)").count(),
    }
    print(json.dumps(found))
finally:
    spark.stop()
    shutil.rmtree(folders, ignore_errors=True)
"""


@pytest.mark.release
def test_source_decoders_and_matching_run_in_executors_of_their_own(tmp_path: Path) -> None:
    require.spark()
    archive, decoders = tmp_path / "archive", tmp_path / "decoders.toml"
    fill(archive, 0, 1_000, roll=400)
    decoders.write_text(DECODERS, encoding="utf-8")
    # Executors take this Python's packages by its path; Spark's own logs go to standard error.
    line = [sys.executable, "-c", PROGRAM, str(archive), str(decoders), str(tmp_path / "work")]
    variables = {**environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=2 * STUCK_SECONDS, env=variables)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    of_each = [sum(1 for number in range(1_000) if number % 3 == kind) for kind in range(3)]
    assert found == {
        "executors": 2, "filtered": of_each[1], "decoders": 1_000, "decode": of_each[2],
        "matched": {"20000": of_each[1], "20001": 1_000}, "sql": of_each[0],
    }  # fmt: skip
