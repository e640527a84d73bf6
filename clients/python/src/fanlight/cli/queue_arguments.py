"""The options of `fanlight queue`, and help that teaches by example."""

import argparse
from collections.abc import Callable
from typing import get_args

from ..queue import WhenFull
from ..queues import COUNT, PAYLOAD_BYTES
from . import exits
from .parsing import Parser, count, seconds

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

EXAMPLES = """\
examples:
  fanlight queue add billing 'orders.#' --dead-letter dead.billing --deliveries-max 5
  fanlight queue add dead 'dead.#'                  dead letters are messages: a queue collects them
  fanlight queue ls                                 what waits, and how long
  fanlight queue peek dead                          look at the first messages, and take none
  fanlight queue move dead --topic                  publish them again where they were published first
  fanlight queue purge billing                      drop what waits
  fanlight queue rm billing

a queue keeps each message that matches one of its filters until a consumer has acknowledged it: docs/queues.md
"""
KEYS = """\
keys of --json:
  topic, payload          as in `fanlight sub --json`, with topic_base64 and payload_base64
  syntax, headers, reply  of the message
  attempt                 how often it was delivered
  seconds                 that it has waited
  size                    bytes of its payload; --json has the first of them (--bytes)
  cut                     true: payload, headers or reply are not complete
"""

Add = Callable[[argparse.ArgumentParser], None]


def add_to(verbs: "argparse._SubParsersAction[Parser]", broker: Add, syntax: Add) -> None:
    """The verb. broker, syntax: add the options that verbs have in common."""
    verb = verbs.add_parser(
        "queue",
        help="add, list, look at, empty, move and remove named queues",
        description="Add, list, look at, empty, move and remove named queues.",
        epilog=f"{EXAMPLES}\n{exits.EXPLAINED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)

    def action(name: str, help: str, examples: str, more: str = "") -> Parser:
        made = actions.add_parser(
            name, help=help, description=help[0].upper() + help[1:] + ".",
            epilog=f"examples:\n{examples}{more}\n{exits.EXPLAINED}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name != "ls":
            made.add_argument("queue", metavar="NAME", help="of the queue")
        return made

    made = [
        _add(action, syntax), _ls(action), _info(action), _purge(action), _rm(action), _peek(action), _move(action),
    ]
    for each in made:
        broker(each)
        each.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for the answer (30)")


Action = Callable[..., Parser]


def _add(action: Action, syntax: Add) -> Parser:
    made = action(
        "add", "add a durable queue, which collects messages from now on",
        "  fanlight queue add billing 'orders.#'\n"
        "  fanlight queue add sensors 'site/+/temp' --messages-max 100000 --overflow drop_oldest\n"
        "  fanlight queue add billing 'orders.#' --dead-letter dead.billing --deliveries-max 5\n"
        "  fanlight queue add large 'orders.#' --where 'total > 1000'\n\n"
        "a queue that exists with the same filters is left as it is: exit code 0. One with other filters, another\n"
        "selector, or another value of an option that is given, is refused: none can be changed. Move the messages to\n"
        "another queue, or remove the queue and add it again\n",
    )
    made.add_argument("filters", metavar="FILTER", nargs="+", help="messages that match one of them are kept")
    made.add_argument("--where", metavar="SELECTOR", help="only messages of which it is true: 'price > 100'")
    made.add_argument("--messages-max", type=count, metavar="N", help="that wait (the broker's limit)")
    made.add_argument("--bytes-max", type=count, metavar="N", help="of these (the broker's limit)")
    made.add_argument(
        "--overflow", choices=get_args(WhenFull),
        help="when it is full: refuse_publisher (the default), drop_newest, drop_oldest, dead_letter (the oldest), "
        "dead_letter_newest",
    )
    made.add_argument("--message-ttl", type=duration, metavar="TIME", help="that a message may wait: 90s, 10m, 2h, 7d")
    made.add_argument("--expires", type=duration, metavar="TIME", help="without a consumer, after which it ends")
    made.add_argument("--deliveries-max", type=count, metavar="N", help="of one message; then it is discarded")
    made.add_argument("--dead-letter", metavar="TOPIC", help="where discarded messages are published")
    made.add_argument(
        "--single-active", action="store_true", default=None, help="only the first consumer gets messages"
    )
    made.add_argument(
        "--priorities", type=count, metavar="N", help="2 to 10: messages of a higher header `priority` are first"
    )
    syntax(made)
    return made


def _ls(action: Action) -> Parser:
    made = action("ls", "list queues: what waits, is delayed and unacknowledged, the oldest message's age, selectors",
                  "  fanlight queue ls\n  fanlight queue ls --json | jq 'select(.waiting > 1000).name'\n")
    made.add_argument("--json", action="store_true", help="a line of JSON for each queue")
    return made


def _info(action: Action) -> Parser:
    made = action("info", "show all about a queue: filters, options, consumers and counts",
                  "  fanlight queue info billing\n")
    made.add_argument("--json", action="store_true", help="one line of JSON")
    return made


def _purge(action: Action) -> Parser:
    return action("purge", "drop the messages that wait, and say how many",
                  "  fanlight queue purge billing\n\nmessages that consumers have and did not acknowledge stay\n")


def _rm(action: Action) -> Parser:
    made = action("rm", "remove a queue that has neither messages nor consumers",
                  "  fanlight queue rm billing\n  fanlight queue rm billing --force\n")
    how = made.add_mutually_exclusive_group()
    how.add_argument("--if-empty", action="store_true", help="also with consumers, if it has no messages")
    how.add_argument("--force", action="store_true", help="also with messages, which are lost, and consumers")
    return made


def _peek(action: Action) -> Parser:
    made = action("peek", "show the first messages that wait, and take none",
                  "  fanlight queue peek dead\n"
                  "  fanlight queue peek dead --count 100 --json | jq '.headers[\"x-death-reason\"]'\n"
                  "  fanlight queue peek sensor-7 --session         what waits for an MQTT client\n"
                  "  fanlight queue peek workers --group 'jobs/#'   and for $share/workers/jobs/#\n", f"\n{KEYS}")
    whose = made.add_mutually_exclusive_group()
    whose.add_argument("--session", action="store_true", help="NAME is the client identifier of an MQTT session")
    whose.add_argument("--group", metavar="FILTER", help="NAME is the group of a shared subscription to this filter")
    made.add_argument("--count", type=count, default=COUNT, metavar="N", help=f"how many, at most ({COUNT})")
    made.add_argument(
        "--bytes", type=count, default=PAYLOAD_BYTES, metavar="N", help=f"of each payload, at most ({PAYLOAD_BYTES:,})"
    )
    made.add_argument("--json", action="store_true", help="a line of JSON for each message; its keys are below")
    return made


def _move(action: Action) -> Parser:
    made = action(
        "move", "move the messages that wait, oldest first",
        "  fanlight queue move dead --topic               each is published where it was published first\n"
        "  fanlight queue move dead --topic --count 1     try it with one\n"
        "  fanlight queue move billing billing-2          to another queue, and to nobody else\n\n"
        "a message that is not taken there stays where it is, with all behind it: the exit code is 1\n",
    )
    made.add_argument("to", metavar="TO", nargs="?", help="another queue")
    made.add_argument(
        "--topic", action="store_true", help="publish each to the topic in its header x-death-topic, or else its own"
    )
    made.add_argument("--count", type=count, metavar="N", help="how many, at most (all that wait now)")
    return made


def duration(word: str) -> float:
    """Seconds, from a number of them or one with a unit."""
    number, unit = (word[:-1], UNITS[word[-1]]) if word[-1:] in UNITS else (word, 1)
    try:
        found = float(number) * unit
    except ValueError:
        found = 0.0
    if not 0 < found <= 3_650 * 86_400:
        raise argparse.ArgumentTypeError(f"must be like 90s, 10m, 2h or 7d; got {word!r}")
    return found
