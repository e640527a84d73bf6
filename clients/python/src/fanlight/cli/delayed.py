"""`fanlight delayed`: delayed messages that wait: list them, and cancel some."""

import argparse
import sys
from collections.abc import Callable

from ..client import Client
from ..connecting import connect
from ..delayed import LISTED, DelayedMessage
from . import exits, text
from .parsing import Parser, count, seconds
from .queue import age, as_json, messages, say

EXAMPLES = """\
examples:
  fanlight pub --delay 900 --receipt orders.7.expire x    prints: delayed 1758
  fanlight delayed ls                                     what waits: id, time left, publisher, topic, payload
  fanlight delayed rm 1758                                cancel it

you see and cancel what your own user has published; with permission to subscribe to everything, all: docs/delayed.md
"""

Add = Callable[[argparse.ArgumentParser], None]


def add_to(verbs: "argparse._SubParsersAction[Parser]", broker: Add) -> None:
    """The verb. broker: adds the options that verbs have in common."""
    form = argparse.RawDescriptionHelpFormatter
    verb = verbs.add_parser(
        "delayed", help="list and cancel delayed messages", description="List and cancel delayed messages.",
        epilog=f"{EXAMPLES}\n{exits.EXPLAINED}", formatter_class=form,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)
    listing = actions.add_parser(
        "ls", help="list the messages that are due first", description="List the messages that are due first.",
        epilog=f"examples:\n  fanlight delayed ls\n  fanlight delayed ls --json | jq .id\n\n{exits.EXPLAINED}",
        formatter_class=form,
    )
    listing.add_argument("--count", type=count, default=LISTED, metavar="N", help=f"how many, at most ({LISTED})")
    listing.add_argument("--json", action="store_true", help="a line of JSON for each message")
    removing = actions.add_parser(
        "rm", help="cancel messages, by their ids", description="Cancel messages, by their ids.",
        epilog=f"examples:\n  fanlight delayed rm 1758 1759\n\nan id that does not wait any more: exit code 1\n\n"
        f"{exits.EXPLAINED}",
        formatter_class=form,
    )
    removing.add_argument("ids", metavar="ID", nargs="+", type=count, help="as `ls`, or a receipt, shows it")
    for each in (listing, removing):
        broker(each)
        each.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for the answer (30)")


async def run(options: argparse.Namespace) -> int:
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key, reconnect=False,
        timeout=options.timeout,
    ) as client:
        return await (ls if options.action == "ls" else rm)(client, options)


async def ls(client: Client, options: argparse.Namespace) -> int:
    found = await client.delayed(options.count)
    for message in found.messages:
        say(as_json(message) if options.json else line(message))
    if not options.json:
        say(f"{messages(found.count)} delayed, the next is due in {age(found.next_seconds)}")
    return exits.OK


async def rm(client: Client, options: argparse.Namespace) -> int:
    code = exits.OK
    for id in options.ids:
        if await client.cancel(id):
            say(f"{id} is cancelled")
        else:
            print(f"fanlight delayed: {id} does not wait: it was routed, or cancelled before", file=sys.stderr)
            code = exits.REFUSED
    return code


def line(message: DelayedMessage) -> str:
    more = "..." if message.size > len(message.payload) else ""
    topic, payload = text.shown(message.topic_bytes, spaces=False), text.shown(message.payload)
    return f"{message.id}  {age(message.seconds)}  {text.shown(message.client, spaces=False)}  {topic} {payload}{more}"
