"""A SparkSession of this machine, with what the pipeline needs. On a cluster, `configure` one's own builder instead.

What is set, and why:
    spark.pyspark.python                      this interpreter: the workers would take another python3
    spark.driver.bindAddress, .host           the loopback interface: nothing listens for others
    spark.sql.session.timeZone                UTC, as the archive's times are
    spark.sql.python.filterPushdown.enabled   where the source's option pushdown asks for it
    spark.ui.enabled                          no port, no threads
    spark.ui.showConsoleProgress              a bar for the tasks of a stage, if standard error is a terminal
    spark.python.authenticate.socketTimeout   what a Python worker may take to start: 15 s are too few on a busy machine
    spark.driver.extraJavaOptions             log4j2.properties beside this file: errors only
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf

from fanlight_spark.functions import selector_matches, topic_matches, topic_word
from fanlight_spark.source import Fanlight

NEEDED: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
LAPTOP: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.authenticate.socketTimeout": "180s",
}
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
LOG4J: Final = Path(__file__).with_name("log4j2.properties")
#: Of SQL.
FUNCTIONS: Final = {
    "topic_matches": (topic_matches, "boolean"), "topic_word": (topic_word, "string"),
    "selector_matches": (selector_matches, "boolean"),
}  # fmt: skip
#: For tests and short jobs: less compiling, fewer tasks. 21 s instead of 44 for 13 small tests.
QUICK: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def has_java() -> bool:
    """Is there a Java for Spark to start?"""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None) is not None


def configure(builder: Any) -> Any:
    """What the pipeline needs of any session, on a builder."""
    for name, value in NEEDED.items():
        builder = builder.config(name, value)
    return builder


def local_session(
    name: str, *, cores: int | None = None, quick: bool = False, settings: dict[str, str] | None = None
) -> SparkSession:
    """A session with the source `fanlight`. cores: all processors if None. settings: of Spark, over those here."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # before its JVM looks for an address to warn of
    builder = configure(SparkSession.builder.master(f"local[{cores or '*'}]").appName(name))
    progress = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}  # a bar that is drawn over itself
    wanted = {**LAPTOP, **progress, **(QUICK if quick else {}), **(settings or {})}
    if "log4j" not in wanted.get(JAVA_OPTIONS, ""):
        wanted[JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={LOG4J.as_uri()} {wanted.get(JAVA_OPTIONS, '')}".strip()
    for key, value in wanted.items():
        builder = builder.config(key, value)
    return register(builder.getOrCreate())


def register(session: SparkSession) -> SparkSession:
    """Make the source `fanlight` and the functions of SQL (functions.py) known to a session."""
    session.dataSource.register(Fanlight)
    for name, (function, result) in FUNCTIONS.items():
        session.udf.register(name, arrow_udf(function, result))
    return session
