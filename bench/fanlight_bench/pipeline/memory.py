"""Memory of Spark's Python workers that match: of their own, with the index mapped and with a copy of it.

    no index     the modules that a matching worker imports, and nothing matched
    1,000 …      a small index, which goes with the function
    1,000,000 …  a large one, which the worker maps
    copied       the same in a broadcast variable: what `match_topics` did before

Each is a session of its own with two executors, `local-cluster[2,1,1024]`, for a worker does not give back what it had.
Private is what nobody else has: it counts once for each worker. Shared is one copy for all workers of a machine's
executor. From /proc/self/smaps of the worker, the most of any, in MiB.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from fanlight_bench.pipeline.case import Bench, PipelineGroup

SMALL, LARGE, QUICK = 1_000, 1_000_000, 20_000
WAYS = ("no index", "mapped", "copied")


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    bench.stop()  # the memory of one Spark is enough
    large = QUICK if bench.quick else LARGE
    wanted = [("no index", SMALL), ("mapped", SMALL), ("mapped", large), ("copied", large)]
    facts = {}
    for way, size in wanted[2:3] if bench.quick else wanted:
        line = [sys.executable, "-m", "fanlight_bench.pipeline.memory", way, str(size), str(bench.folder)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise AssertionError(f"memory, {way}: {done.stderr[-2_000:]}")
        facts[way if way == "no index" else f"{size:,} filters, {way}"] = json.loads(done.stdout.splitlines()[-1])
    yield PipelineGroup("memory of a worker, MiB", facts=facts)


def measure(way: str, size: int, folder: str) -> dict[str, float]:
    """What the workers of one session have."""
    from pyspark.sql import SparkSession

    from fanlight_bench.pipeline import messages
    from fanlight_spark.session import configure, register
    from fanlight_spark.shared import SharedIndex
    from fanlight_spark.topics import index_of

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = configure(SparkSession.builder.master("local-cluster[2,1,1024]").appName("memory"))
    for name, value in {
        "spark.executor.memory": "1024m", "spark.ui.enabled": "false", "spark.local.dir": folder,
        "spark.python.authenticate.socketTimeout": "180s",
    }.items():  # fmt: skip
        builder = builder.config(name, value)
    session = register(builder.getOrCreate())
    try:
        names = messages.topics()
        index = index_of((text, number, "mqtt") for number, text in enumerate(messages.filters(names, size)))
        expected = int(index.match_many(list(names), syntax="mqtt")[0][-1])
        shared = session.sparkContext.broadcast(index) if way == "copied" else SharedIndex(session, index)
        frame = session.createDataFrame([(name,) for name in names], "topic STRING").repartition(8)
        columns = "pid INT, matches BIGINT, private BIGINT, shared BIGINT"
        found = frame.mapInArrow(asking(shared, way), columns).collect()
    finally:
        session.stop()
    if (matches := sum(row.matches for row in found)) != (0 if way == "no index" else expected):
        raise AssertionError(f"{way}: {matches:,} matches, and not {expected:,}")
    most = {name: max(row[name] for row in found) for name in ("private", "shared")}
    return {name: round(kilobytes / 1024, 1) for name, kilobytes in most.items()}


def own_memory(smaps: str) -> tuple[int, int]:
    """Of a process's mappings, kilobytes: what is its own, and what another process shares or would share.

    A page of a file counts as dirty as long as the file has not been written to the disk, whoever wrote it: what a
    process has of its own are pages without a file, and those of files that it has changed, which are anonymous then.
    """
    private = resident = 0
    of_file, sizes = False, {}
    for line in smaps.splitlines():
        name, *rest = line.split()
        if name.endswith(":"):
            sizes[name] = int(rest[0]) if rest[0].isdigit() else 0
            if name == "VmFlags:":  # the last line of a mapping
                own = sizes["Private_Dirty:"]
                private += min(own, sizes["Anonymous:"]) if of_file else own
                resident += sizes["Rss:"]
        else:
            of_file = rest[3] != "0"
    return private, resident - private


def asking(shared: Any, way: str) -> Any:
    """For mapInArrow: match each batch, and say what this process has then."""

    def ask(batches: Any) -> Any:
        from pathlib import Path

        from fanlight_archive.arrow import pa
        from fanlight_spark.topics import match_rows

        for batch in batches:
            matches = 0
            if way != "no index":
                index = shared.value if way == "copied" else shared.index
                syntax = pa.array(["mqtt"] * batch.num_rows, pa.string())
                matches = int(match_rows(index, batch.column(0), syntax)[0][-1])
            private, others = own_memory(Path("/proc/self/smaps").read_text())
            found = [[os.getpid()], [matches], [private], [others]]
            types = [pa.int32(), pa.int64(), pa.int64(), pa.int64()]
            yield pa.RecordBatch.from_arrays(
                [pa.array(value, type) for value, type in zip(found, types, strict=True)],
                names=["pid", "matches", "private", "shared"],
            )

    return ask


if __name__ == "__main__":
    json.dump(measure(sys.argv[1], int(sys.argv[2]), sys.argv[3]), sys.stdout)
