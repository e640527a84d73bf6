"""Bars of a stream: a row for each bar that a batch has changed, and a page that is written anew each time.

Spark keeps the bars that may still change, as far back as --late; a message that is later than that is dropped, and
counted. A batch's rows are in stream/revision=N: a run that was killed within a batch makes the same rows again, in
the same folder. The archive has all messages, and the job without --stream makes the exact bars of them.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_spark.bars import VALUES, Every, by_time, latest, readable, with_local
from fanlight_spark.jobs import charts, command
from fanlight_spark.jobs.bar_report import SHOWN, Counts, draw, page_of

PROGRESS: Final = "spark.sql.streaming.numRecentProgressUpdates"
BATCHES_MAX: Final = 10_000  # of a run, of which counts are kept
SETTINGS: Final = "stream.json"  # below --out: what the stream that goes on there was begun with
KEYS_MAX: Final = 100  # of which the page keeps bars
ROWS_MAX: Final = 20_000  # of a batch that the page looks at
REFRESH: Final = 2  # seconds until a browser reads the page again
SCHEMA: Final = (
    "key STRING, start TIMESTAMP, end TIMESTAMP, open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE, volume DOUBLE, "
    "vwap DOUBLE, count BIGINT, revision INT"
)


class Live:
    """Where a stream writes: rows, and the page. It keeps the newest bars of the keys that it saw first."""

    def __init__(self, out: Path, key: str, title: str, about: str, going_on: bool) -> None:
        self.out, self._key, self._title, self._about, self._going_on = out, key, title, about, going_on
        self._held: dict[str, dict[Any, Any]] = {}
        self._messages: Counter[str] = Counter()

    def revisions(self, spark: SparkSession) -> DataFrame:
        """What was written so far."""
        folder = self.out / "stream"
        if not any(folder.glob("revision=*/_SUCCESS")):
            return spark.createDataFrame([], SCHEMA)
        return spark.read.parquet(str(folder))

    def resume(self, spark: SparkSession) -> None:
        """Look at what runs before have written."""
        self._take(latest(self.revisions(spark)))

    def write(self, changed: DataFrame, number: int) -> None:
        """One batch."""
        folder = str(self.out / "stream" / f"revision={number}")
        changed.coalesce(1).write.mode("overwrite").parquet(folder)
        self._take(changed.sparkSession.read.schema(changed.schema).parquet(folder))
        if self._going_on:
            self._page(number).write(self.out / command.REPORT)

    def _take(self, bars: DataFrame) -> None:
        rows = bars.select("key", "start", *VALUES).orderBy(F.desc("start")).limit(ROWS_MAX).collect()
        for row in reversed(rows):
            if row.key in self._held or len(self._held) < KEYS_MAX:
                held = self._held.setdefault(row.key, {})
                held[row.start] = row
                while len(held) > charts.CANDLES_MAX:
                    del held[min(held)]

    def _page(self, number: int) -> Any:
        bars = [row for held in self._held.values() for row in held.values()]
        messages = sum(row["count"] for row in bars)
        page = page_of(self._title, self._about, Counts(messages), len(bars), len(self._held), REFRESH)
        page.say(f"As of batch {number:,}; a browser reads the page again every {REFRESH} seconds. It shows the newest "
                 f"bars of {KEYS_MAX} keys at most.")  # fmt: skip
        volumes = {key: sum(row.volume or 0 for row in held.values()) for key, held in self._held.items()}
        shown = sorted(volumes, key=lambda key: (-volumes[key], key))[:SHOWN]
        draw(page, shown, sorted((row for row in bars if row.key in shown), key=lambda row: row.start))
        return page


def run(
    ticks: DataFrame, every: Every, zone: str, live: Live, asked: dict[str, Any], late: str, trigger: str | None = None
) -> Counts:
    """As far as there are messages; or on and on, with a trigger. Raises ValueError where the stream was another."""
    spark = ticks.sparkSession
    _same_as_before(live.out, asked)
    live.resume(spark)
    spark.conf.set(PROGRESS, str(BATCHES_MAX))
    timely = with_local(readable(ticks), every, zone).withWatermark("local", late)
    query = (
        by_time(timely, every, zone).writeStream.outputMode("update").foreachBatch(live.write)
        .option("checkpointLocation", str(live.out / "checkpoint"))
        .trigger(**({"processingTime": trigger} if trigger else {"availableNow": True}))
        .start()
    )  # fmt: skip
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        if trigger is None:
            raise
        # How one that goes on and on is ended.
    finally:
        query.stop()
    return counts_of(query.recentProgress)


def counts_of(progress: Sequence[Any]) -> Counts:
    """The sums over the batches of a query."""
    seen = [one.observedMetrics["ticks"] for one in progress if "ticks" in one.observedMetrics]
    return Counts(
        sum(row["messages"] for row in seen), sum(row["unreadable"] for row in seen),
        late=sum(state.numRowsDroppedByWatermark for one in progress for state in one.stateOperators),
    )  # fmt: skip


def _same_as_before(out: Path, asked: dict[str, Any]) -> None:
    """Raises ValueError where the stream was begun with other windows or topics: bars of both would be mixed."""
    path = out / SETTINGS
    try:
        was = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asked) + "\n", encoding="utf-8")
        return
    for name, value in asked.items():
        if was.get(name) != value:
            raise ValueError(f"{out}/stream was begun with {name} {was.get(name)}, not {value}: take another folder")
