"""What archiving costs the broker: processor time for each message that is archived, and bytes on the disk.

Processor time is that of pairs of publisher and subscriber at full speed, with 100 bytes a message, without and with
an archive, in turns. At full speed the archive does not keep up, and leaves messages out; what is spent more than
without one is divided by those that it has. Bytes are those of the demo's real quotes, which compress as such messages
do; a load generator's would not.
"""

import asyncio
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fanlight_bench.demo import quotes
from fanlight_bench.launch import Broker, on_cpu
from fanlight_bench.pipeline.case import Bench, PipelineGroup

WITHOUT = "no archive"
COMPRESSIONS = ("none", "lz4", "zstd")
SECONDS, WARM_SECONDS, TURNS = 2.0, 0.5, 3
ENOUGH = 20_000  # quotes
BROKER_CPU, GENERATOR_CPU = 0, 1


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    sizes = {kind: _bytes_per_message(kind, 500 if bench.quick else ENOUGH, bench.folder) for kind in COMPRESSIONS}
    with on_cpu(None if bench.quick else GENERATOR_CPU):  # the load is generated in this process
        costs = _costs(bench)
    for kind, size in sizes.items():
        costs[kind]["bytes a quote"] = size
    yield PipelineGroup("archive_compression", facts=costs)


def _bytes_per_message(compression: str, count: int, folder: Path) -> float:
    """Bytes on the disk per quote; the payloads have 119 bytes."""
    from fanlight import connect

    some = [quote for quote, _ in zip(quotes.read(), range(count), strict=False)]
    place = tempfile.mkdtemp(dir=folder)

    async def publish(url: str) -> None:
        async with connect(url) as client:
            for quote in some[:-1]:
                await client.publish(quote.topic, quote.payload, syntax=quote.syntax)
            await client.publish(some[-1].topic, some[-1].payload, syntax=some[-1].syntax, receipt=True)

    with Broker(archive=place, archive_compression=compression) as broker:
        asyncio.run(publish(broker.url))
        broker.terminate()
    size = sum(path.stat().st_size for path in Path(place).glob("*.arrows"))
    return round(size / len(some), 1)


@dataclass(frozen=True, slots=True)
class Load:
    """What a load came to. us: the broker's, for a published message; share: of the messages, that was archived."""

    us: float
    rate: float
    share: float


def _costs(bench: Bench) -> dict[str, dict[str, float]]:
    """Without an archive and with one of each compression: what a message costs, and how many there are."""
    found: dict[str, list[Load]] = {kind: [] for kind in (WITHOUT, *COMPRESSIONS)}
    for _ in range(1 if bench.quick else TURNS):
        for kind, loads in found.items():
            loads.append(_load(kind, bench))
    bare = found.pop(WITHOUT)
    costs = {
        WITHOUT: {
            "messages/s": _middle(load.rate for load in bare), "us a message": _middle(load.us for load in bare)
        }
    }  # fmt: skip
    for kind, loads in found.items():
        # Of neighbours: what is spent more, on those that are archived.
        more = [(load.us - other.us) / load.share for load, other in zip(loads, bare, strict=True)]
        costs[kind] = {
            "messages/s": _middle(load.rate for load in loads),
            "archived/s": _middle(load.rate * load.share for load in loads),
            "us to archive one": _middle(more),
        }
    return costs


def _middle(values: Iterable[float]) -> float:
    """The median, to three digits."""
    return float(f"{statistics.median(values):.3g}")


def _load(kind: str, bench: Bench) -> Load:
    """Pairs at full speed. Raises AssertionError if something was lost on the way to a subscriber."""
    from fanlight_bench.load.run import run
    from fanlight_bench.load.scenario import Scenario

    pairs = Scenario("pairs", "pairs", "dev/{i}/temp", publishers=20, subscribers=20, topics=20, payload_bytes=100)
    place = tempfile.mkdtemp(dir=bench.folder)
    archive: dict[str, Any] = {} if kind == WITHOUT else {"archive": place, "archive_compression": kind}
    duration, warmup = (0.2, 0.1) if bench.quick else (SECONDS, WARM_SECONDS)
    with Broker(cpu=None if bench.quick else BROKER_CPU, **archive) as broker:
        result = run(pairs, broker.url, duration=duration, warmup=warmup, pids=[broker.pid])
        share = 0.0 if kind == WITHOUT else _share(broker.http_url)
        broker.kill()  # what it has archived is of no use
    shutil.rmtree(place)
    if not result.ok:
        raise AssertionError(f"{kind}: {result.faults}")
    return Load(result.broker_us_per_publish or 0.0, result.published_per_second, share)


def _share(url: str) -> float:
    """Of the messages that a broker has had, how many are in its archive or on their way there."""
    with urlopen(f"{url}/archive", timeout=10) as answer:
        counters = json.load(answer)
    return float(counters["archive_messages"] / (counters["archive_messages"] + counters["archive_dropped"]))
