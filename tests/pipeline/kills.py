"""Kill every stream of the pipeline at points chosen by chance: `python -m tests.pipeline.kills 20` for 20 kills each.

    source      an archive into Parquet              delta      compact --format delta, with merges
    sink        an archive to a broker, with marks   iceberg    compact --format iceberg
    bars        the job bars --stream                kafka-out  an archive to Kafka
    remote      a broker's archive into Parquet      kafka-in   Kafka to a broker

A process is killed by SIGKILL, one with Spark together with its JVM and its workers, within a batch or between two, and
is started again; after KILLS of them it is run to its end. What it has made is then compared with what plain Python
makes of the messages. Prints a line a round; exit code 1, and the stream and seed, where something is missing or there
twice. `make crash-test` does the same for the broker.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

from fanlight_bench.launch import Broker
from fanlight_spark.broker import Address
from fanlight_spark.remote import Remote
from tests.pipeline.conftest import fill
from tests.pipeline.killed import environment
from tests.pipeline.test_sink import values
from tests.pipeline.ticking import bars_of, fill_with_ticks
from tests.pipeline.ticking import found as found_bars

KILLS: Final = 5  # of a round
ROWS: Final = 2_000
STEP: Final = 100  # messages of a batch
NUMBERS: Final = count()

# Reads an archive, or a broker's, in batches of 100, in two partitions each, as far as there is something to read.
PROGRAM: Final = """
import sys
from pathlib import Path
from fanlight_spark.session import local_session
from tests.pipeline.ticking import stream_bars

kind, name, work, url = sys.argv[1:]
session = local_session("killed", cores=2, quick=True, settings={"spark.local.dir": work + "/local"})
options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 100, "maxRecordsPerPartition": 60}
where = {"url": name} if kind == "remote" else {"path": name}
stream = session.readStream.format("fanlight").options(**options, **where).load()
if kind == "bars":
    stream_bars(stream, Path(work))
else:
    rows = stream.select("topic", "value", "syntax") if kind == "sink" else stream
    query = rows.writeStream.option("checkpointLocation", work + "/checkpoint").trigger(availableNow=True)
    if kind == "sink":
        query = query.format("fanlight").option("url", url).start()
    else:
        query = query.format("parquet").start(work + "/out")
    query.awaitTermination()
session.stop()
"""


class Killed:
    """A stream of Spark that is killed and started again."""

    def __init__(self, work: Path, kind: str, name: str, url: str = "") -> None:
        self._work = work
        self._arguments = [kind, name, str(work), url]

    def run(self, kills: int, chance: random.Random) -> None:
        for _ in range(kills):
            self._kill_somewhere(chance, 2 * ROWS // STEP // (kills + 1))
        assert self._start().wait() == 0, (self._work / "log").read_text(errors="replace")[-4_000:]

    def _start(self) -> Any:
        with (self._work / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *self._arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env=environment(),
            )  # fmt: skip

    def _kill_somewhere(self, chance: random.Random, most: int) -> None:
        """Up to so many files of the checkpoint later, and a little: in a batch, or between two."""
        wanted = self._written() + chance.randrange(1, most)
        process = self._start()
        try:
            while process.poll() is None and self._written() < wanted:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.5)
        finally:
            with suppress(ProcessLookupError):  # it has come to its end
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _written(self) -> int:
        logs = (self._work / "checkpoint" / log for log in ("offsets", "commits"))
        return sum(len(list(log.glob("[0-9]*"))) for log in logs)


def kill_source(work: Path, *, kills: int, seed: int) -> None:
    fill(work / "archive", 0, ROWS, size=50, roll=400)
    Killed(work, "source", str(work / "archive")).run(kills, random.Random(seed))
    each_once(offsets_in(work / "out"))


def kill_remote(work: Path, *, kills: int, seed: int) -> None:
    fill(work / "archive", 0, ROWS, size=50, roll=400)
    with broker_at(work / "archive") as broker:
        Killed(work, "remote", broker.url).run(kills, random.Random(seed))
    each_once(offsets_in(work / "out"))


def kill_sink(work: Path, *, kills: int, seed: int) -> None:
    fill(work / "archive", 0, ROWS, size=50, roll=400)
    with broker_at(work / "received") as broker:
        Killed(work, "sink", str(work / "archive"), broker.url).run(kills, random.Random(seed))
        with Remote(Address(broker.url), "#", "amqp", 1):  # asks, and so waits until all of it is in the archive
            each_once(values(work / "received"))


def kill_bars(work: Path, *, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    ticks = fill_with_ticks(work / "archive", ROWS, chance)
    Killed(work, "bars", str(work / "archive")).run(kills, chance)
    expected, found = bars_of(ticks), found_bars(work)
    assert found == expected, sorted(set(expected.items()) ^ set(found.items()))[:5]


def kill_table(format: str, work: Path, *, kills: int, seed: int) -> None:
    from tests.without_spark.test_lakehouse import kill_delta
    from tests.without_spark.test_lakehouse_iceberg import kill_iceberg

    {"delta": kill_delta, "iceberg": kill_iceberg}[format](work, kills=kills, seed=seed)


def kill_bridge(way: str, work: Path, *, kills: int, seed: int) -> None:
    from tests.kafka.peer import MockKafka
    from tests.kafka.test_kafka_in import kill_inward
    from tests.kafka.test_kafka_out import kill_outward

    with MockKafka() as kafka:
        prefix = f"t{next(NUMBERS)}"

        def fresh(name: str) -> str:
            return kafka.topic(f"{prefix}-{name}")

        if way == "out":
            fill(work / "archive", 0, 1_000, roll=400)
            kill_outward(work / "archive", kafka, fresh, work, kills=kills, seed=seed)
        else:
            with broker_at(work / "received") as broker:
                kill_inward(broker, work / "received", kafka, fresh, work, kills=kills, seed=seed)


STREAMS: Final[dict[str, Callable[..., None]]] = {
    "source": kill_source, "remote": kill_remote, "sink": kill_sink, "bars": kill_bars,
    "delta": lambda work, **of: kill_table("delta", work, **of),
    "iceberg": lambda work, **of: kill_table("iceberg", work, **of),
    "kafka-out": lambda work, **of: kill_bridge("out", work, **of),
    "kafka-in": lambda work, **of: kill_bridge("in", work, **of),
}  # fmt: skip


@contextmanager
def broker_at(archive: Path) -> Iterator[Broker]:
    broker = Broker(archive=archive, archive_receipts=True)
    try:
        yield broker
    finally:
        broker.terminate()


def offsets_in(out: Path) -> list[int]:
    """Of the files that the stream has committed. Others may be there, of batches that were killed: Spark's readers,
    too, go by this log, of which each tenth entry has all before it."""
    entries = {int(path.name.removesuffix(".compact")): path for path in (out / "_spark_metadata").glob("[0-9]*")}
    whole = max((number for number, path in entries.items() if path.suffix), default=0)
    found: list[int] = []
    for number in sorted(entries):
        for line in entries[number].read_text().splitlines()[1:] if number >= whole else ():
            name = json.loads(line)["path"].rpartition("/")[2]
            found += pq.read_table(out / name, columns=["offset"])["offset"].to_pylist()
    return found


def each_once(found: list[int]) -> None:
    missing = sorted(set(range(ROWS)) - set(found))
    again = len(found) - len(set(found))
    assert not missing and not again, f"{len(missing)} missing, such as {missing[:5]}; {again} there again"  # noqa: PT018


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.kills", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("kills", nargs="?", type=int, default=20, help="of each stream (%(default)s)")
    parser.add_argument("--only", choices=list(STREAMS), action="append", help="this stream; may be given again")
    parser.add_argument("--seed", type=int, help="of the first round (by chance)")
    options = parser.parse_args()
    first = random.randrange(1 << 31) if options.seed is None else options.seed
    for kind in options.only or STREAMS:
        for done in range(0, options.kills, KILLS):
            kills, seed = min(KILLS, options.kills - done), first + done // KILLS
            with tempfile.TemporaryDirectory() as name:
                try:
                    STREAMS[kind](Path(name), kills=kills, seed=seed)
                except AssertionError as error:
                    print(f"{kind}, seed {seed}: {error}", file=sys.stderr)
                    return 1
            print(f"{kind}, seed {seed}: {kills} kills, everything once; {done + kills} in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
