"""The command line: verbs, options, and help that teaches by example."""

import argparse
import time
from datetime import datetime
from typing import TypeAlias

from .. import __version__
from ..connecting import DEFAULT_URL
from . import admin, completion, contexts, definitions, delayed, exits, others, policy, queue_arguments, spelling
from .parsing import Parser, count, seconds
from .text import JSON_KEYS

EXAMPLES = """\
examples:
  fanlight sub 'stock.#'                          every quote, one line each
  fanlight sub 'site/+/temp'                      the same broker, with topics in MQTT syntax
  fanlight sub 'stock.*.AAPL' --count 1 --json    one message, with its headers, then exit
  fanlight pub stock.nasdaq.AAPL 189.95           one message
  tail -f app.log | fanlight pub logs.app         a message for each line
  fanlight reply clock.now --exec date            answer requests with the output of a program
  fanlight request clock.now                      send a request, print the answer
  fanlight top                                    rates, hot topics, slow consumers
  fanlight explain stock.nasdaq.AAPL              which subscriptions match, and why
  fanlight queue ls                               named queues: what waits, and for how long
  fanlight delayed ls                             delayed messages, and when they are due
  fanlight definitions import rabbit.json         exchanges, queues and bindings of RabbitMQ
  fanlight admin ls connections                   who is connected; kick, purge, drain, ...: fanlight admin --help
  fanlight context add prod fanlights://HOST      a name for a broker

A broker's address is fanlight://[user:password@]host[:port], or fanlights:// by TLS; --url, else FANLIGHT_URL, else
that of the context in use (`fanlight context`), else
"""


def parser() -> argparse.ArgumentParser:
    root = Parser(
        prog="fanlight",
        description="Publish, subscribe, ask and answer on a Fanlight broker.",
        epilog=f"{EXAMPLES.rstrip()} {DEFAULT_URL}\n\n{exits.EXPLAINED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"fanlight {__version__}")
    verbs = root.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Parser)
    _pub(verbs)
    _sub(verbs)
    _request(verbs)
    _reply(verbs)
    _top(verbs)
    _explain(verbs)
    queue_arguments.add_to(verbs, _broker, _syntax)
    delayed.add_to(verbs, _broker)
    definitions.add_to(verbs, _http)
    policy.add_to(verbs, _http)
    admin.add_to(verbs, _http)
    contexts.add_to(verbs)
    completion.add_to(verbs, root)
    for name, line in others.names().items():
        if name not in verbs.choices:
            verbs.add_parser(name, add_help=False, help=line)
    return root


AGO = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"


def _verb(verbs: Verbs, name: str, help: str, examples: str, more: str = "") -> argparse.ArgumentParser:
    return verbs.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=f"examples:\n{examples}{more}\n{exits.EXPLAINED}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _pub(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "pub",
        "publish a payload, or each line of standard input",
        "  fanlight pub forex.eur 1.0842\n"
        "  fanlight pub forex.eur 1.0842 --receipt        prints the number of subscriptions that got it\n"
        "  fanlight pub orders.7.expire --delay 900 ''      the broker delivers it in 15 minutes\n"
        "  fanlight pub site/7/temp 21.5 --header unit=C            a / or a + means MQTT syntax (--syntax)\n"
        "  fanlight pub stock.a x --header unit=C --header close:=612.5    := sends a number, true or false\n"
        "  seq 1000000 | fanlight pub numbers                       a message for each line\n"
        "  fanlight pub firmware.7 --file image.bin                 one message: the file's content\n"
        "  tar c . | fanlight pub backup --stdin-whole              one message: all of standard input\n",
    )
    verb.add_argument("topic", metavar="TOPIC")
    verb.add_argument("payload", metavar="PAYLOAD", nargs="?", help="without it, each line of standard input is one")
    whole = verb.add_mutually_exclusive_group()
    whole.add_argument("--file", metavar="FILE", help="publish the content of FILE, octet by octet, as one message")
    whole.add_argument("--stdin-whole", action="store_true", help="publish all of standard input as one message")
    _broker(verb)
    _syntax(verb)
    _headers(verb)
    verb.add_argument(
        "--delay", type=seconds, metavar="SECONDS", help="the broker keeps it and delivers it after this time"
    )
    verb.add_argument(
        "--receipt", action="store_true",
        help="wait for receipts and print the number of subscriptions; exit with 5 if there was none",
    )
    verb.add_argument("--timeout", type=seconds, default=10.0, metavar="SECONDS", help="for answers (10)")


def _sub(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "sub",
        "subscribe, and write a line `topic payload` for each message",
        "  fanlight sub 'forex.*'\n"
        "  fanlight sub 'stock.nyse.#' 'stock.nasdaq.#'\n"
        "  fanlight sub 'site/+/temp' --json | jq .payload\n"
        "  fanlight sub jobs --group workers              each message to one of the workers\n"
        "  fanlight sub 'stock.#' --count 10 --timeout 5\n"
        "  fanlight sub 'stock.#' --where \"close > 500 AND volume > 1000000\"     only what it is true of\n"
        "  fanlight sub 'stock.#' --since 10m             messages archived in the last 10 minutes, then new ones\n"
        "  fanlight sub firmware.7 --count 1 --raw > image.bin\n",
        f"\n{JSON_KEYS}",
    )
    verb.add_argument("filters", metavar="FILTER", nargs="+", help="a message arrives once for each matching filter")
    _broker(verb)
    _syntax(verb)
    verb.add_argument("--count", type=count, metavar="N", help="exit after N messages")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="write a JSON object for each message; its keys are below")
    form.add_argument("--payload-only", action="store_true", help="write a line `payload` for each, without its topic")
    form.add_argument("--raw", action="store_true", help="write the payloads' octets as they are, with nothing between")
    verb.add_argument("--where", metavar="SELECTOR", help="only messages of which it is true: 'price > 100'")
    whose = verb.add_mutually_exclusive_group()
    whose.add_argument("--group", metavar="NAME", help="queue group: each message goes to one member")
    whose.add_argument(
        "--since", type=_since, metavar="WHEN",
        help="begin with archived messages: since 90s, 10m, 2h or 1d ago, since 2026-01-31T12:00, or all",
    )
    verb.add_argument("--timeout", type=seconds, metavar="SECONDS", help="exit with 4 if idle for this time")
    _ready(verb)


def _request(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "request",
        "publish a request and write the first answer",
        "  fanlight request clock.now\n  fanlight request sums.add '[1, 2]' --timeout 2\n\n"
        "an answer with the header `error` is an error: it is written, and the exit code is 1\n",
    )
    verb.add_argument("topic", metavar="TOPIC")
    verb.add_argument("payload", metavar="PAYLOAD", nargs="?")
    _broker(verb)
    _syntax(verb)
    _headers(verb)
    verb.add_argument("--json", action="store_true", help="write the whole answer as JSON")
    verb.add_argument("--timeout", type=seconds, default=10.0, metavar="SECONDS", help="(10)")


def _reply(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "reply",
        "answer requests: with their payload, a template, or the output of a program",
        "  fanlight reply echo\n"
        "  fanlight reply 'greet.*' --template 'hello {payload}, you asked {topic}'\n"
        "  fanlight reply words.count --exec 'wc -w' --group counters\n",
    )
    verb.add_argument("filter", metavar="FILTER")
    _broker(verb)
    _syntax(verb)
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--echo", action="store_true", help="with the request's payload (the default)")
    how.add_argument("--upper", action="store_true", help="with the payload in upper case")
    how.add_argument("--template", metavar="TEXT", help="with TEXT, where {payload} and {topic} are filled in")
    how.add_argument(
        "--exec",
        metavar="COMMAND",
        help="with the output of COMMAND: payload on its standard input, FANLIGHT_TOPIC in its environment, no shell; "
        "when it fails, the answer has the header `error`",
    )
    verb.add_argument("--group", metavar="NAME", help="share the requests with others of this name")
    verb.add_argument("--count", type=count, metavar="N", help="exit after N requests")
    verb.add_argument(
        "--exec-timeout", "--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for COMMAND (30)"
    )
    _ready(verb)


def _top(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "top",
        "show rates, hot topics and slow consumers, or users, live",
        "  fanlight top\n  fanlight top --once --json\n  fanlight top --http http://user:password@broker:7421\n"
        "  fanlight top --users                     who publishes and gets how much; who is held back or refused\n"
        "  fanlight top --users --count 10 --rows 50\n",
    )
    _http(verb)
    verb.add_argument("--interval", type=_interval, default=1.0, metavar="SECONDS", help="between readings (1)")
    verb.add_argument("--topics", type=count, default=10, metavar="N", help="how many hot topics (10)")
    verb.add_argument(
        "--users", action="store_true", help="users and addresses: rates, connections, sessions, and what is refused"
    )
    verb.add_argument("--rows", type=count, default=20, metavar="N", help="of --users: how many (20)")
    pages = verb.add_mutually_exclusive_group()
    pages.add_argument("--once", action="store_true", help="one page, over one interval, then exit")
    pages.add_argument("--count", type=count, metavar="N", help="exit after N pages")
    verb.add_argument("--json", action="store_true", help="a line of JSON for each page")


def _explain(verbs: Verbs) -> None:
    verb = _verb(
        verbs,
        "explain",
        "show which subscriptions match a topic, and why",
        "  fanlight explain stock.nasdaq.AAPL\n"
        "  fanlight explain stock.nyse.BRK.B --client desk-7      and why this client does not get it\n"
        "  fanlight explain stock.nyse.BRK.B --fields '{\"close\": 80}'      and whose selector is not true of that\n",
    )
    verb.add_argument("topic", metavar="TOPIC")
    _http(verb)
    _syntax(verb)
    verb.add_argument("--client", metavar="NAME", help="explain why this client's other filters do not match")
    verb.add_argument(
        "--fields", metavar="JSON",
        help='a message\'s fields: {"price": 80, "payload.total": 1}; says whose selector is not true of them, and why',
    )
    verb.add_argument("--json", action="store_true", help="the broker's answer, unchanged")


def _broker(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--url", help="the broker (FANLIGHT_URL, or that of the context)")
    _context(verb)
    verb.add_argument("--name", help="this client's name in the broker's logs and views")
    _tls(verb)


def _http(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--http",
        metavar="URL",
        help="the broker's HTTP listener (FANLIGHT_HTTP_URL, or that of the context)",
    )
    _context(verb)
    _tls(verb)


def _context(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--context", metavar="NAME", help="the broker of this name: `fanlight context`")


def _tls(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--ca", metavar="FILE", help="for TLS: the CA certificates to trust, PEM (the system's)")
    verb.add_argument("--cert", metavar="FILE", help="for TLS: the certificate to show, PEM")
    verb.add_argument("--key", metavar="FILE", help="for TLS: its private key, PEM (in the certificate's file)")


def _syntax(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--syntax",
        choices=spelling.CHOICES,
        default=spelling.AUTO,
        help=spelling.HELP,
    )


def _headers(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--headers", "--header", action="append", metavar="KEY=TEXT",
        help="a header; KEY:=VALUE sends a number, true or false, which selectors compare as such; may be given again",
    )


def _ready(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--ready", action="store_true", help="print a line to standard error when subscribed, for scripts"
    )


def _interval(word: str) -> float:
    if (number := seconds(word)) < 0.05:
        raise argparse.ArgumentTypeError(f"must be at least 0.05 seconds, to measure a rate over; got {word!r}")
    return number


def _since(word: str) -> datetime | float:
    """A time, or how long ago."""
    if word == "all":
        return 0.0
    if word[-1:] in AGO and word[:-1].replace(".", "", 1).isdigit():
        return time.time() - float(word[:-1]) * AGO[word[-1]]
    try:
        return datetime.fromisoformat(word).astimezone()  # local time if it has no zone
    except ValueError:
        raise argparse.ArgumentTypeError("must be like 10m (s, m, h, d), 2026-01-31T12:00, or all") from None
