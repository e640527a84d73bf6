"""`fanlight definitions`: AMQP's vhosts, exchanges, queues and bindings as RabbitMQ's file of definitions.

A file is sent in pieces, and read in pages, over the broker's HTTP listener.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from . import exits
from .http import Views
from .parsing import Parser

LISTS = ("vhosts", "users", "permissions", "topic_permissions", "policies", "parameters", "global_parameters",
         "exchanges", "queues", "bindings")  # fmt: skip
AT_ONCE = 500  # objects of a request
PIECE_BYTES_MAX = 256 * 1024
PAGE_ROWS = 1_000
TIMEOUT_SECONDS = 120.0

EXAMPLES = """\
examples:
  rabbitmqctl export_definitions rabbit.json
  fanlight definitions import rabbit.json --dry-run      say what is not supported, and change nothing
  fanlight definitions import rabbit.json
  fanlight definitions export fanlight.json

users and their passwords:  fanlightd user import USERS_FILE rabbit.json
permissions:                fanlightd permissions import rabbitmq rabbit.json
"""


def add_to(verbs: "argparse._SubParsersAction[Parser]", http: Any) -> None:
    """The verb. http: adds the options of the HTTP listener."""
    form = argparse.RawDescriptionHelpFormatter
    about = "import and export AMQP's exchanges, queues and bindings"
    verb = verbs.add_parser(
        "definitions", help=about, description=f"{about[0].upper()}{about[1:]}, as RabbitMQ's file of definitions.",
        epilog=f"{EXAMPLES}\n{exits.EXPLAINED}", formatter_class=form,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)
    taking = actions.add_parser("import", help="declare what a file has", description="Declare what a file has.")
    taking.add_argument("file", metavar="FILE", help="as rabbitmqctl export_definitions writes it; - is standard input")
    taking.add_argument("--dry-run", action="store_true", help="only say what is not supported")
    writing = actions.add_parser("export", help="write a file", description="Write a file.")
    writing.add_argument("file", metavar="FILE", help="- is standard output")
    for each in (taking, writing):
        http(each)


def run(options: argparse.Namespace) -> int:
    views = Views(options.http, options.ca, options.cert, options.key)
    return take(views, options) if options.action == "import" else write(views, options)


def take(views: Views, options: argparse.Namespace) -> int:
    try:
        if options.file == "-":
            document = json.load(sys.stdin)
        else:
            with open(options.file, encoding="utf-8") as file:
                document = json.load(file)
    except ValueError as error:
        raise ValueError(f"{options.file}: is not JSON: {error}") from None
    if not isinstance(document, dict) or not any(isinstance(document.get(each), list) for each in LISTS):
        raise ValueError(f"{options.file}: is no file of definitions: it has none of {', '.join(LISTS)}")
    done = refused = 0
    for piece in pieces(document):
        answer = views.post("/definitions/import", {**piece, "dry_run": options.dry_run}, TIMEOUT_SECONDS)
        done += answer["done"]
        refused += len(answer["refused"])
        for each in answer["notes"]:
            print(f"note: {each}")
        for each in answer["refused"]:
            print(f"fanlight definitions: refused: {each}", file=sys.stderr)
    verb = "would be declared" if options.dry_run else "are declared"
    print(f"{done} exchanges, queues and bindings {verb}, {refused} refused")
    return exits.REFUSED if refused else exits.OK


def pieces(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The file's objects in an order in which they can be declared, not too many and not too large at once."""
    for name in LISTS:
        found = document.get(name) or []
        if not isinstance(found, list):
            raise ValueError(f"{name}: is no list")
        piece: list[Any] = []
        size = 0
        for each in found:
            nbytes = len(json.dumps(each))
            if piece and (len(piece) >= AT_ONCE or size + nbytes > PIECE_BYTES_MAX):
                yield {name: piece}
                piece, size = [], 0
            piece.append(each)
            size += nbytes
        if piece:
            yield {name: piece}


def write(views: Views, options: argparse.Namespace) -> int:
    document: dict[str, list[Any]] = {name: [] for name in ("vhosts", "exchanges", "queues", "bindings")}
    offset: int | None = 0
    left_out = 0
    while offset is not None:
        page = views.get("/definitions", limit=PAGE_ROWS, offset=offset)
        for row in page["rows"]:
            for name, each in row.items():
                if name in document:
                    document[name].append(each)
                else:
                    left_out += 1
                    print(f"fanlight definitions: left out: {each.get('reason')}", file=sys.stderr)
        offset = page["next"]
    text = json.dumps(document, indent=1) + "\n"
    if options.file == "-":
        sys.stdout.write(text)
    else:
        with open(options.file, "w", encoding="utf-8") as file:
            file.write(text)
    return exits.REFUSED if left_out else exits.OK
