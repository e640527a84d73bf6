"""`fanlight queue`: named queues for operators: add, list, look at, empty, move, remove."""

import argparse
import base64
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from ..client import Client
from ..connecting import connect
from ..delayed import DelayedMessage
from ..queue import QueueOptions
from ..queues import QueueInfo, QueueState, WaitingMessage
from . import exits, spelling, text
from .streams import Output

COLUMNS: tuple[tuple[str, Callable[[QueueState], str]], ...] = (  # of the table: heading, what it says of a queue
    ("NAME", lambda queue: text.shown(queue.name, spaces=False)),
    ("WAITING", lambda queue: f"{queue.waiting:,}"),
    ("DELAYED", lambda queue: f"{queue.delayed:,}"),
    ("UNACKED", lambda queue: f"{queue.unacknowledged:,}"),
    ("CONSUMERS", lambda queue: f"{queue.consumers:,}"),
    ("BYTES", lambda queue: f"{queue.bytes:,}"),
    ("OLDEST", lambda queue: age(queue.oldest_seconds)),
    ("WHERE", lambda queue: selector(queue.where)),
)  # fmt: skip
TEXTS = 0, len(COLUMNS) - 1
WHERE_MOST = 40  # characters of a selector


async def run(options: argparse.Namespace) -> int:
    actions: dict[str, Callable[[Client, argparse.Namespace], Awaitable[int]]] = {
        "add": add, "ls": ls, "info": info, "purge": purge, "rm": rm, "peek": peek, "move": move,
    }
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key, reconnect=False,
        timeout=options.timeout,
    ) as client:
        return await actions[options.action](client, options)


async def add(client: Client, options: argparse.Namespace) -> int:
    filters = [(text.topic(word), spelling.of_filter(options, word)) for word in options.filters]
    given = {field.name: getattr(options, field.name, None) for field in fields(QueueOptions)}
    if options.dead_letter is not None:
        given["dead_letter"] = text.topic(options.dead_letter)
        given["dead_letter_syntax"] = spelling.of_topic(options, options.dead_letter)
    wanted = QueueOptions(**{key: value for key, value in given.items() if value is not None})
    new = await client.queues.add(options.queue, *filters, where=options.where, options=wanted)
    say(f"{quoted(options.queue)} {'is added' if new else 'exists, declared like this'}")
    return exits.OK


async def ls(client: Client, options: argparse.Namespace) -> int:
    queues = await client.queues.list()
    for line in [json.dumps(asdict(each), ensure_ascii=False) for each in queues] if options.json else table(queues):
        say(line)
    return exits.OK


async def info(client: Client, options: argparse.Namespace) -> int:
    found = await client.queues.info(options.queue)
    if options.json:
        say(json.dumps(text.plain(document(found)), ensure_ascii=False))
    else:
        for line in described(found):
            say(line)
    return exits.OK


async def purge(client: Client, options: argparse.Namespace) -> int:
    say(f"{messages(await client.queues.purge(options.queue))} dropped")
    return exits.OK


async def rm(client: Client, options: argparse.Namespace) -> int:
    lost = await client.queues.remove(options.queue, if_empty=options.if_empty, force=options.force)
    say(f"{quoted(options.queue)} is removed{f', with {messages(lost)}' if lost else ''}")
    return exits.OK


async def peek(client: Client, options: argparse.Namespace) -> int:
    queues, bounds = client.queues, {"payload_bytes": options.bytes}
    if options.session:
        found = await queues.peek_session(options.queue, options.count, **bounds)
    elif options.group is not None:
        found = await queues.peek_group(options.queue, text.topic(options.group), options.count, **bounds)
    else:
        found = await queues.peek(options.queue, options.count, **bounds)
    for message in found:
        say(as_json(message) if options.json else line(message))
    return exits.OK


async def move(client: Client, options: argparse.Namespace) -> int:
    if (options.to is None) is not options.topic:
        raise ValueError("say where to: the name of another queue, or --topic; not both")
    moved = await client.queues.move(options.queue, options.to, count=options.count)
    say(f"{messages(moved.messages)} moved")
    if moved.stopped is None:
        return exits.OK
    print(f"fanlight queue: stopped: {text.shown(moved.stopped)}", file=sys.stderr)
    return exits.REFUSED


# -- how it is shown --------------------------------------------------------------------------------------------------


def say(line: str) -> None:
    Output().write(line, flush=True)


def quoted(name: str) -> str:
    return f"'{text.shown(name)}'"


def messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def age(seconds: float | None) -> str:
    """In the largest unit of which it is one."""
    if seconds is None:
        return "-"
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"


def table(queues: Sequence[QueueState]) -> list[str]:
    """A heading and a line for each; numbers to the right."""
    rows = [[heading for heading, _ in COLUMNS], *([show(queue) for _, show in COLUMNS] for queue in queues)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(row[at].ljust(width) if at in TEXTS else row[at].rjust(width) for at, width in enumerate(widths))
        .rstrip()
        for row in rows
    ]


def selector(where: str | None) -> str:
    """The selector of a queue in the table, its beginning if it is long: `info` has all."""
    shown = "" if where is None else text.shown(where)
    return shown if len(shown) <= WHERE_MOST else f"{shown[: WHERE_MOST - 3]}..."


def document(found: QueueInfo) -> dict[str, Any]:
    said = asdict(found)
    said["filters"] = [{"filter": filter, "syntax": syntax} for filter, syntax in found.filters]
    said["clients"] = [dict(each) for each in found.clients]
    return said


def described(found: QueueInfo) -> list[str]:
    options = {key: value for key, value in asdict(found.options).items() if value not in (None, False)}
    if found.options.dead_letter is None:
        options.pop("dead_letter_syntax", None)
    kind = "durable" if found.durable else "not durable"
    out = [f"{quoted(found.name)}, {kind}{f', of {text.shown(found.user)}' if found.user else ''}"]
    out += [f"  filter {text.shown(filter)} ({syntax})" for filter, syntax in found.filters]
    out += [f"  where {text.shown(found.where)}"] if found.where is not None else []
    out += [f"  {key} {shown_option(value)}" for key, value in options.items()]
    out += [
        f"  now: {found.waiting:,} waiting, {found.delayed:,} delayed, {found.unacknowledged:,} unacknowledged, "
        f"{found.bytes:,} bytes, oldest {age(found.oldest_seconds)}",
        f"  so far: {found.messages:,} messages, {found.deliveries:,} deliveries ({found.redeliveries:,} again), "
        f"{found.acknowledged:,} acknowledged, {found.discarded:,} discarded",
        f"  {found.consumers:,} consumer{'' if found.consumers == 1 else 's'}",
    ]
    out += [
        f"    {text.shown(str(each.get('client')))} (connection {each.get('connection')}): "
        f"{each.get('unacknowledged')} of {each.get('prefetch')} unacknowledged, {each.get('delivered')} delivered"
        for each in found.clients
    ]
    return out


def shown_option(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) and value is not True else text.shown(str(value))


def line(message: WaitingMessage) -> str:
    """As `fanlight sub` has it; what is not all there ends in three dots."""
    more = "..." if message.size > len(message.payload) else ""
    return f"{text.shown(message.topic_bytes, spaces=False)} {text.shown(message.payload)}{more}"


def as_json(message: WaitingMessage | DelayedMessage) -> str:
    """One line; octets that are not UTF-8 also in base64."""
    document = asdict(message)
    del document["topic_bytes"]
    for key, octets in (("topic", message.topic_bytes), ("payload", message.payload)):
        try:
            document[key] = octets.decode()
        except UnicodeDecodeError:
            document[key] = octets.decode(errors="replace")
            document[f"{key}_base64"] = base64.b64encode(octets).decode()
    return json.dumps(text.plain(document), ensure_ascii=False)
