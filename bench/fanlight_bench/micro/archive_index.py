"""The indexes beside the segments of an archive: what they cost to make, and what a replay reads with them.

    write ...    batches of quotes into a closed segment, ns a message: without an index, with one, with one of three
                 numeric fields, which are read from headers and JSON in Python. `beside` is without an index
    replay ...   of the whole archive, ns a message that it has, without indexes and with them:
        rare           a topic of two messages
        seldom         a topic of one message in 50,000, so in a batch of twelve
        everywhere     a topic of one message in 500, which is in every batch: the cliff, for batches are read whole
        a third        a pattern that matches a third
        all            everything: the bar is 1.05
        dear           a condition on an indexed field, true of about one message in 300
        peak           the same, true of two messages
        nothing        a topic that there is not

`index_percent`, `index_with_fields_percent`: of the segments' bytes, which are compressed with LZ4 as by default. All
processor time, of all threads. Writing is the writer's part alone: what a message costs the broker on its way to the
archive is not in the baseline, so the ratio is more than a broker has.
"""

import queue
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time_ns
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from fanlight_archive import MESSAGE, Writer
from fanlight_bench.demo import quotes
from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.replay import ReplayPart, ReplayRequest
from fanlight_broker.storage.archive_index import SegmentIndexer, fields_named
from fanlight_broker.storage.replays import ArchiveReplays
from matchcore.row_screener import RowScreener

ROUNDS, QUICK_ROUNDS = 30, 1  # through the sample of 13,130 quotes
BATCH = 4_096
SEGMENT = 40  # batches
SELDOM = 50_000
ALARMS = dict.fromkeys((75_001, 275_001), "alarm.flood")
FIELDS = "close, volume, payload.open"
PEAK = b"9999.5"  # higher than all quotes: the close of the two alarms
REPLAYS: dict[str, tuple[str, str | None]] = {
    "rare": ("alarm.flood", None), "seldom": ("alarm.fire", None),
    "everywhere": ("stock.nyse.A", None), "a third": ("stock.nasdaq.*", None),
    "all": ("#", None), "dear": ("stock.#", "close > 1000"), "peak": ("#", "close > 9000"),
    "nothing": ("weather.*", None),
}  # fmt: skip
Indexer = Callable[[], SegmentIndexer] | None


def groups(effort: Effort) -> Iterator[Group]:
    batches = list(batches_of(effort.sized(ROUNDS, QUICK_ROUNDS)))
    messages = sum(batch.num_rows for batch in batches)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kinds: dict[str, Indexer] = {
            "no index": None, "topics": SegmentIndexer, "three fields": lambda: SegmentIndexer(fields_named(FIELDS)),
        }  # fmt: skip
        facts: dict[str, object] = {"messages": messages}
        for name, indexer in kinds.items():
            write(place / name, batches, indexer)
        segments, topics = sizes(place / "topics")
        facts["bytes_per_message"] = round(segments / messages, 1)
        facts["index_percent"] = round(100 * topics / segments, 2)
        facts["index_with_fields_percent"] = round(100 * sizes(place / "three fields")[1] / segments, 2)
        cases = [
            Case(
                f"write, {name}", messages, partial(written, place / "again", batches, indexer),
                () if indexer is None else ("write, no index",),
            )
            for name, indexer in kinds.items()
        ]  # fmt: skip
        for name, (filter, where) in REPLAYS.items():
            plain, ask = f"replay {name}, no index", partial(replayed, place / "three fields", filter, where)
            cases.append(Case(plain, messages, partial(ask, indexed=False)))
            cases.append(Case(f"replay {name}", messages, partial(ask, indexed=True), (plain,)))
        yield Group("archive_index", cases, facts)


def batches_of(rounds: int) -> Iterator[Any]:
    """The sample again and again, as batches of the archive; headers as the archive keeps them."""
    sample = list(quotes.read())
    endless = ((number, quote) for number, quote in enumerate(sample * rounds))
    while some := list(islice(endless, BATCH)):
        yield pa.record_batch(
            {
                "timestamp": pa.array([number for number, _ in some], pa.timestamp("us", tz="UTC")),
                "topic": [ALARMS.get(number, "alarm.fire") if is_alarm(number) else one.topic for number, one in some],
                "value": [quote.payload for _, quote in some],
                "headers": pa.array(
                    [
                        [
                            {"key": "close", "value": close_of(number, one)},
                            {"key": "volume", "value": str(one.headers["volume"]).encode()},
                        ]
                        for number, one in some
                    ],
                    MESSAGE.field("headers").type,
                ),
                "client": ["demo"] * len(some),
                "protocol": ["native"] * len(some),
                "syntax": ["amqp" if is_alarm(number) else one.syntax for number, one in some],
                "qos": pa.array([0] * len(some), pa.int8()),
                "retain": [False] * len(some),
                "content_type": ["application/json"] * len(some),
                "reply_topic": pa.nulls(len(some), pa.string()),
                "correlation": pa.nulls(len(some), pa.binary()),
            },
            schema=MESSAGE,
        )


def close_of(number: int, quote: quotes.Quote) -> bytes:
    return PEAK if number in ALARMS else str(quote.headers["close"]).encode()


def is_alarm(number: int) -> bool:
    return number in ALARMS or number % SELDOM == SELDOM // 2


def write(folder: Path, batches: list[Any], indexer: Indexer) -> None:
    writer = Writer(folder, compression="lz4", indexer=indexer, segment_bytes=1 << 40, segment_seconds=1e9)
    for number, batch in enumerate(batches, 1):
        writer.append(batch)
        if number % SEGMENT == 0:
            writer.roll()
    writer.close()
    if writer.indexes.error is not None:
        raise writer.indexes.error


def written(folder: Path, batches: list[Any], indexer: Indexer) -> int:
    start = process_time_ns()
    write(folder, batches, indexer)
    taken = process_time_ns() - start
    shutil.rmtree(folder)
    return taken


def sizes(folder: Path) -> tuple[int, int]:
    """Bytes of segments, and of their indexes."""
    segments, indexes = (sum(path.stat().st_size for path in folder.glob(name)) for name in ("*.arrows", "*.index"))
    return segments, indexes


class Parts:
    """The loop that a replay reports to: a queue."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any) -> None:
        self.calls.put((callback, args))


def replayed(folder: Path, filter: str, where: str | None, *, indexed: bool) -> int:
    start = process_time_ns()
    loop = Parts()
    replays = ArchiveReplays(folder, loop, lambda asked: RowScreener(asked.selector), indexed=indexed)
    condition = None if where is None else condition_of(where)
    wanted = ReplayRequest(filter.encode(), "amqp", condition=condition)
    reading = replays.read(wanted, lambda offset, time, topic, number, value, content: value)
    parts: list[ReplayPart] = []
    while not parts or not parts[-1].at_end:
        reading.ask(None, parts.append)
        callback, arguments = loop.calls.get()
        callback(*arguments)
        if parts[-1].error is not None:
            raise parts[-1].error
    reading.close()
    replays.stop()
    return process_time_ns() - start
