"""Snapshots of a broker's subscriptions: who wanted what at a moment, as a file of JSON lines.

    python -m fanlight_spark.snapshot http://127.0.0.1:7421 subscriptions.jsonl   takes one; as `curl` does, but surely

    snapshot = read("subscriptions.jsonl")
    match_topics(messages, snapshot.filters())      ids are places in snapshot.subscriptions; `fields` where these
                                                    have selectors

docs/snapshots.md has the format. A file with a head was taken from a broker and must be whole, with its end; one
without is written by hand, and each line needs no more than its filter. It needs no Spark.
"""

import argparse
import base64
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

VERSIONS: Final = (1, 2)  # 2: a subscription may have a selector
SYNTAXES: Final = ("amqp", "mqtt")
PATH: Final = "/subscriptions?format=jsonl"
TIMEOUT_SECONDS: Final = 30.0  # without a byte
_TYPES: Final = {"qos": int, "no_echo": bool, "session": bool}  # the others are text
LINE_MAX: Final = 1 << 20  # bytes: a filter of 65,535 bytes, escaped, and the rest


class SnapshotError(ValueError):
    """What was read is no snapshot, or no whole one."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription. filter: as it was asked for; what is no UTF-8 is in it as lone surrogates."""

    filter: str
    syntax: str = "amqp"
    client: str = ""
    user: str = ""  # "" if anonymous
    group: str | None = None  # queue group: one of its members gets a message
    qos: int = 0
    no_echo: bool = False  # gets nothing that its own client publishes
    session: bool = False  # its client gets a message once, however many of its filters match (MQTT)
    where: str | None = None  # a selector: it gets only messages of which that is true

    @property
    def shown(self) -> str:
        """The filter for people, and for Spark, whose strings are UTF-8: other bytes as backslash escapes."""
        return self.filter.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Subscriptions in the order of the file; their places are what other code calls their ids."""

    subscriptions: tuple[Subscription, ...]
    taken: str | None = None  # when, in ISO 8601; None of one by hand

    @property
    def no_echo(self) -> bool:
        """Does any of them ask who published?"""
        return any(each.no_echo for each in self.subscriptions)

    @property
    def selectors(self) -> int:
        """How many of them have a selector, so that a topic alone does not say whether they get a message."""
        return sum(each.where is not None for each in self.subscriptions)

    def filters(self) -> Iterator[tuple[bytes, int, str, str | None]]:
        """(filter, id, syntax, selector or None), as `match_topics` takes them."""
        for number, each in enumerate(self.subscriptions):
            yield each.filter.encode("utf-8", "surrogateescape"), number, each.syntax, each.where


def read(path: Path | str) -> Snapshot:
    """The snapshot in a file. Raises SnapshotError, OSError."""
    with open(path, "rb") as file:
        return parse(file, str(path))


def parse(lines: Iterable[bytes], where: str = "snapshot") -> Snapshot:
    """The same from lines. Raises SnapshotError."""
    head: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    found: list[Subscription] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _object(line, f"{where}, line {number}")
        if end is not None:
            raise SnapshotError(f"{where}, line {number}: there is something behind the end")
        if "snapshot" in row and head is None and not found:
            head = row
            if row["snapshot"] not in VERSIONS:
                known = " and ".join(map(str, VERSIONS))
                raise SnapshotError(f"{where}: of version {row['snapshot']!r}; this program reads {known}")
        elif "end" in row:
            end = row
        else:
            found.append(_subscription(row, f"{where}, line {number}"))
    if head is not None and (end is None or end["end"] != len(found)):
        said = "has no end" if end is None else f"says that it has {end['end']!r}"
        raise SnapshotError(
            f"{where}: has {len(found)} subscriptions and {said}. Take it again; or, if it was edited, "
            "remove its first and last line"
        )
    return Snapshot(tuple(found), str(head["taken"]) if head is not None and "taken" in head else None)


def take(url: str, file: Path) -> int:
    """Write a broker's subscriptions to a file, whole or not at all; how many they are.

    url: http://[user:password@]host:port of its HTTP listener. Where the broker ends the connection, as it does with
    each after its time, it goes on behind the last subscription. Raises SnapshotError, OSError.
    """
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with aside.open("wb") as out:
            count = _copy(url, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(aside, file)
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()
    return count


def _copy(url: str, out: Any) -> int:
    """As many requests as it takes; each of them brings something, or it is given up."""
    count, following, end = 0, 0, False
    while not end:
        before = count
        try:
            with _open(url, following) as answer:
                while line := answer.readline(LINE_MAX):
                    row = _object(line, "its answer")
                    if "snapshot" in row:
                        if count == 0 and following == 0:
                            out.write(line)
                    elif "end" in row:
                        if row["end"] != count - before:
                            raise SnapshotError(f"it sent {count - before} subscriptions of {row['end']!r}")
                        end = True
                    elif isinstance(number := row.get("id"), int):
                        out.write(line)
                        count, following = count + 1, number + 1
                    else:
                        raise SnapshotError("this is not a broker's answer: a line has no id")
            if not end:
                raise ConnectionError("the answer has no end")
        except (HTTPException, ConnectionError, SnapshotError) as error:  # cut off, perhaps in the middle of a line
            if count == before:
                raise SnapshotError(f"{_shown(url)}: {error}") from error
    out.write(json.dumps({"end": count}).encode() + b"\n")
    return count


def _open(url: str, place: int) -> Any:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SnapshotError("give the address of the broker's HTTP listener, such as http://127.0.0.1:7421")
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(f"{parts.scheme}://{host}{parts.path.rstrip('/')}{PATH}&from={place}")
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    # No proxy: the broker is nearby, and proxies that the environment names are for elsewhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(1_000).decode("utf-8", "replace").strip()
        raise SnapshotError(f"HTTP {error.code}: {said}") from None


def _shown(url: str) -> str:
    """Without its password."""
    before, at, behind = url.rpartition("@")
    return f"{before.partition('//')[0]}//...@{behind}" if at else url


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SnapshotError(f"{where}: no line of JSON: {error}") from error
    if not isinstance(row, dict):
        raise SnapshotError(f"{where}: a JSON object is wanted, with a filter in it")
    return row


def _subscription(row: dict[str, Any], where: str) -> Subscription:
    known = {name: row[name] for name in Subscription.__dataclass_fields__ if row.get(name) is not None}
    for name, value in known.items():
        wanted = _TYPES.get(name, str)
        if not isinstance(value, wanted):
            raise SnapshotError(f"{where}: {name} is {value!r}, and should be {wanted.__name__}")
    if "filter" not in known:
        raise SnapshotError(f"{where}: no filter")
    found = Subscription(**known)
    if found.syntax not in SYNTAXES:
        raise SnapshotError(f"{where}: syntax {found.syntax!r} is neither amqp nor mqtt")
    try:
        found.filter.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise SnapshotError(f"{where}: the filter has a surrogate that stands for no byte") from error
    if found.syntax == "mqtt" and found.filter.startswith("$share/"):
        raise SnapshotError(f'{where}: of a shared subscription give the name as "group", and the filter behind it')
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_spark.snapshot",
        description="Write all subscriptions of a running broker to a file of JSON lines, for the pipeline's jobs.",
        epilog="example:\n  python -m fanlight_spark.snapshot http://127.0.0.1:7421 subscriptions.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", metavar="URL", help="of the broker's HTTP listener; http://user:password@host:7421")
    parser.add_argument("file", metavar="FILE", type=Path, help="where it goes: whole, or not at all")
    options = parser.parse_args(arguments)
    try:
        count = take(options.url, options.file)
    except (SnapshotError, OSError) as error:
        print(f"fanlight_spark.snapshot: {error}", file=sys.stderr)
        return 1
    print(f"{options.file}: {count:,} subscriptions", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
