"""`python -m fanlight_spark.kafka`: a bridge between Kafka and an archive or a broker.

  out  an archive's messages to Kafka; INPUT is its folder, or the url of the broker that keeps it
  in   Kafka's records to a broker, which archives them; INPUT is its url

Both go on until they are interrupted (SIGINT, SIGTERM), or with --once until all that is there has passed, and go on
where they were when they are started again under the same name. Exit codes: 0; 2 for what cannot be done.
"""

import argparse
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import matchcore
from fanlight import FanlightError
from fanlight_archive import Archive, ArchiveError
from fanlight_spark.broker import Address
from fanlight_spark.kafka.cluster import SECONDS, Cluster, KafkaFailed, read_config
from fanlight_spark.kafka.inward import Inward, InwardSettings
from fanlight_spark.kafka.outward import POSITIONS, ROWS, Outward, OutwardSettings, Sent
from fanlight_spark.kafka.records import Addressing, Naming
from fanlight_spark.positions import ROWS_PER_PARTITION, Bounds, Log
from fanlight_spark.remote import Remote
from fanlight_spark.selection import Selection
from fanlight_spark.topics import index_of
from matchcore.where import parse_where

WRONG = 2
REPORT_SECONDS = 60.0
FAILURES = (KafkaFailed, ArchiveError, FanlightError, ValueError, OSError, ImportError)
PASSWORD = "FANLIGHT_PASSWORD"  # as the command `fanlight` has it


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m fanlight_spark.kafka", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = made.add_subparsers(dest="way", required=True)
    out = _way(ways, "out", "an archive's messages to Kafka", "the folder of an archive, or fanlight://host:7420")
    out.add_argument("--topic", required=True, help="of Kafka; {root} in it is the first word of a message's topic")
    out.add_argument("--filter", metavar="FILTER", help="only topics that it matches, such as stock.#")
    out.add_argument("--syntax", choices=("amqp", "mqtt"), default="amqp", help="of --filter (%(default)s)")
    out.add_argument("--where", metavar="SELECTOR", help="only messages of which this selector is true")
    out.add_argument("--from", dest="start", default="earliest", help="earliest, latest or an offset (%(default)s)")
    out.add_argument("--positions", default=POSITIONS, metavar="TOPIC", help="of Kafka, compacted (%(default)s)")
    out.add_argument("--rows", type=int, default=ROWS, metavar="N", help="messages of a transaction (%(default)s)")
    out.add_argument(
        "--on-loss", choices=("fail", "skip"), default="fail", help="where messages are gone (%(default)s)"
    )
    into = _way(ways, "in", "Kafka's records to a broker", "the broker, as fanlight://host:7420")
    into.add_argument("--topic", action="append", required=True, help="of Kafka; may be given several times")
    into.add_argument(
        "--to", default="{key}", metavar="TOPIC", help="where to publish; {key} and {topic} are replaced (%(default)s)"
    )
    into.add_argument("--syntax", choices=("amqp", "mqtt"), help="of --to (the record's own, or amqp)")
    into.add_argument("--from", dest="start", choices=("earliest", "latest"), default="earliest", help="(%(default)s)")
    into.add_argument(
        "--generation", type=int, default=0, metavar="N", help="raise it when a topic was made anew (%(default)s)"
    )
    into.add_argument("--skip", action="store_true", help="leave out records that cannot be messages")
    return made


def name_of(text: str) -> str:
    """The type of --name."""
    if re.fullmatch(r"[A-Za-z0-9._-]{1,48}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r}: 1 to 48 letters, digits, . _ - are wanted")
    return text


def _way(ways: Any, name: str, about: str, input: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = ways.add_parser(name, help=about)
    add = made.add_argument
    add("input", metavar="INPUT", help=f"{input} (user and password in the url, or the password in {PASSWORD})")
    add("--kafka", required=True, metavar="HOST:PORT", help="where Kafka is; several with commas")
    add(
        "--name",
        type=name_of,
        required=True,
        help="of the bridge: its place is kept under it, so there is one of each name",
    )
    add("--kafka-config", type=Path, metavar="FILE", help="name=value lines for librdkafka: TLS, login, compression")
    add("--once", action="store_true", help="end with what is there now")
    add("--timeout", type=float, default=SECONDS, metavar="S", help="seconds for an answer (%(default)g)")
    add("--ca", metavar="FILE", help="of the broker's certificate (fanlights://)")
    add("-v", "--verbose", action="store_true", help="say more, and what librdkafka says")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a bridge; the exit code."""
    options = parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.DEBUG if options.verbose else logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        config = read_config(options.kafka_config) if options.kafka_config else {}
        cluster = Cluster(options.kafka, config, options.timeout)
        said = _out(options, cluster, stop) if options.way == "out" else _in(options, cluster, stop)
    except FAILURES as error:
        print(f"python -m fanlight_spark.kafka {options.way}: {error}", file=sys.stderr)
        return WRONG
    print(said, file=sys.stderr)
    return 0


def _out(options: argparse.Namespace, cluster: Cluster, stop: threading.Event) -> str:
    lossy = options.on_loss == "skip"
    settings = OutwardSettings(
        options.name, Naming(options.topic), options.start, options.positions, options.rows, options.once,
        bounds=Bounds(fail_on_loss=not lossy, skip_corrupt=lossy),
    )  # fmt: skip
    archive, selection = _archive(options)
    with closing(archive):
        bridge = Outward(archive, selection, cluster, settings)
        with _Reports(lambda: _sent(bridge.sent)):
            return _sent(bridge.run(stop))


def _archive(options: argparse.Namespace) -> tuple[Log, Selection]:
    """An archive, and what is wanted of it; its broker asks that itself."""
    if "://" in options.input:
        remote = Remote(_address(options), options.filter or "#", options.syntax, ROWS_PER_PARTITION, options.where)
        return remote, Selection(None, None, None)
    named = (options.filter, options.syntax) if options.filter is not None else None
    index: matchcore.FrozenIndex | None = index_of([(*named[:1], 0, named[1])]) if named else None
    selector = parse_where(options.where) if options.where is not None else None
    return Archive(options.input), Selection(named, index, selector)


def _in(options: argparse.Namespace, cluster: Cluster, stop: threading.Event) -> str:
    settings = InwardSettings(
        options.name, tuple(options.topic), Addressing(options.to, options.syntax), options.start, options.generation,
        options.once, options.skip,
    )  # fmt: skip
    bridge = Inward(cluster, _address(options), settings)

    def said() -> str:
        taken = bridge.taken
        return f"{taken.messages} messages, {taken.repeated} repeated, {taken.skipped} skipped"

    with _Reports(said):
        bridge.run(stop)
    return said()


def _address(options: argparse.Namespace) -> Address:
    given = {"url": options.input, "timeout": str(options.timeout)}
    if options.ca is not None:
        given["ca"] = options.ca
    if PASSWORD in os.environ:
        given["password"] = os.environ[PASSWORD]
    return Address.of(given)


def _sent(sent: Sent) -> str:
    looped = f", {sent.looped} from Kafka left out" if sent.looped else ""
    return f"{sent.records} records in {sent.transactions} transactions{looped}, {sent.behind} messages behind"


class _Reports:
    """A line a minute for as long as a bridge runs, by a thread that ends with it."""

    def __init__(self, said: Any) -> None:
        self._said, self._over = said, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(REPORT_SECONDS):
            print(f"{time.strftime('%H:%M:%S')} {self._said()}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
