"""Keep the classes that Spark loads in one archive of the JVM's, so that each JVM of the tests starts in half the time.

    share_classes.py

The tests of tests/pipeline start thirty JVMs, each of which would read and verify the same 10,000 classes. An archive
of another JVM, or of other jars, is not used, and nothing is said of it: the classes are loaded as ever. (JEP 350,
https://openjdk.org/jeps/350)
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

CLASSES = Path(__file__).resolve().parent.parent / "build" / "spark" / "classes.jsa"
QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def main() -> int:
    """Run two small queries, and write the archive at the end of the JVM, unless there is one of this Spark."""
    spark_here = find_spec("pyspark")
    if spark_here is None or spark_here.origin is None:
        return 0  # the tests say that it is missing
    if CLASSES.exists() and CLASSES.stat().st_mtime > max(map(os.path.getmtime, (spark_here.origin, __file__))):
        return 0
    CLASSES.parent.mkdir(parents=True, exist_ok=True)
    CLASSES.unlink(missing_ok=True)
    # Where Spark's own script takes further options of its JVM from.
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={CLASSES} {QUIETLY}"
    from fanlight_spark.session import local_session

    spark = local_session("classes", cores=2, quick=True)
    spark.sparkContext.setLogLevel("ERROR")
    spark.createDataFrame([(1, 2.0, "a")], "n INT, x DOUBLE, word STRING").groupBy("word").count().collect()
    spark.range(1_000).selectExpr("id % 7 AS k").groupBy("k").count().orderBy("k").collect()
    spark.stop()
    gateway = spark.sparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # at which the JVM ends
    gateway.proc.wait()
    if not CLASSES.exists():
        print(f"share_classes: no archive {CLASSES}: each JVM of the tests loads its classes anew", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
