"""A running broker: its archive read through it, and rows published to it.

    path         all columns that a broker sends, from the archive's folder
    url          the same through the broker, by replay
    sink         rows published, each with its receipt
    marked       the same with marks, so that the broker takes each row once
    one by one   foreachPartition with the SDK, one receipt awaited after the other: the simplest way to publish

The broker has one of the processors, if it likes; it is not pinned, for it is part of what is measured.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from fanlight_bench.launch import Broker
from fanlight_bench.pipeline import messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, noop

READ, PUBLISHED, ONE_BY_ONE = 300_000, 100_000, 5_000  # rows


def one_by_one(url: str) -> Any:
    """For foreachPartition."""

    def publish(rows: Iterable[Any]) -> None:
        from fanlight import sync

        with sync.connect(url) as client:
            for row in rows:
                client.publish(row.topic, bytes(row.value), syntax="mqtt", receipt=True)

    return publish


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    session, folder = bench.session, bench.folder / "live"
    folder.mkdir()
    rows, few, fewer = map(bench.some, (READ, PUBLISHED, ONE_BY_ONE))
    archive, flat = messages.write(folder, messages.topics(), rows)
    with Broker(archive=archive) as broker:
        by_url = session.read.format("fanlight").option("url", broker.url).load()
        by_path = session.read.format("fanlight").schema(by_url.schema).load(str(archive))
        for frame in (by_url, by_path):
            if (found := frame.count()) != rows:
                raise AssertionError(f"{found} rows, and not {rows}")
        cases = [
            PipelineCase("path", rows, lambda: noop(by_path)),
            PipelineCase("url", rows, lambda: noop(by_url), ("path",), slow=True),
        ]
        yield PipelineGroup("read", cases)
    taken = session.read.parquet(str(flat)).select("topic", "value")
    some = taken.limit(few).repartition(2).cache()
    least = taken.limit(fewer).repartition(2).cache()
    least.count()
    some.count()
    with Broker() as broker:
        names = count()

        def publish(**options: str) -> None:
            write = some.write.format("fanlight").options(url=broker.url, syntax="mqtt", **options)
            write.mode("append").save()

        cases = [
            PipelineCase("one by one", fewer, lambda: least.foreachPartition(one_by_one(broker.url))),
            PipelineCase("sink", few, publish, ("one by one",)),
            PipelineCase("marked", few, lambda: publish(producer=f"bench-{next(names)}"), ("sink",)),
        ]
        yield PipelineGroup("publish", cases)
    some.unpersist()
    least.unpersist()
