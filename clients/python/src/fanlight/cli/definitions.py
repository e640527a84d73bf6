"""`fanlight definitions`: AMQP's vhosts, policies, exchanges, queues and bindings as RabbitMQ's file of definitions.

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
ABOUT = ("rabbit_version", "rabbitmq_version", "product_name", "product_version", "rabbitmq_definition_format",
         "original_cluster_name", "original_vhost_name", "explanation", "metadata")  # fmt: skip
EXPORTED = ("vhosts", "policies", "parameters", "exchanges", "queues", "bindings")
AT_ONCE = 500  # objects of a request
PIECE_BYTES_MAX = 256 * 1024
PAGE_ROWS = 1_000
TIMEOUT_SECONDS = 120.0

EXAMPLES = """\
examples:
  rabbitmqctl export_definitions rabbit.json
  fanlightd definitions rabbit.json                      say what would be made, without a running broker
  fanlight definitions import rabbit.json --dry-run      the same of a broker that runs, and change nothing
  fanlight definitions import rabbit.json
  fanlight definitions export fanlight.json
  fanlight definitions clear shop                        remove what is in a vhost

users and their passwords:  fanlightd user import USERS_FILE rabbit.json
permissions:                fanlightd permissions import rabbitmq rabbit.json
"""


def add_to(verbs: "argparse._SubParsersAction[Parser]", http: Any) -> None:
    """The verb. http: adds the options of the HTTP listener."""
    form = argparse.RawDescriptionHelpFormatter
    about = "import and export AMQP's policies, exchanges, queues and bindings"
    verb = verbs.add_parser(
        "definitions", help=about, description=f"{about[0].upper()}{about[1:]}, as RabbitMQ's file of definitions.",
        epilog=f"{EXAMPLES}\n{exits.EXPLAINED}", formatter_class=form,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)
    taking = actions.add_parser("import", help="declare what a file has", description="Declare what a file has.")
    taking.add_argument("file", metavar="FILE", help="as rabbitmqctl export_definitions writes it; - is standard input")
    taking.add_argument("--dry-run", action="store_true", help="only say what would be made, and what would not")
    writing = actions.add_parser("export", help="write a file", description="Write a file.")
    writing.add_argument("file", metavar="FILE", help="- is standard output")
    clearing = actions.add_parser(
        "clear", help="remove all that AMQP clients and files have declared in a vhost",
        description="Remove policies, queues and their messages, exchanges and bindings of a vhost.",
    )
    clearing.add_argument("vhost", metavar="VHOST", help="also one that the setting amqp_vhosts does not name any more")
    clearing.add_argument("--yes", action="store_true", help="do not ask")
    for each in (taking, writing, clearing):
        http(each)


def run(options: argparse.Namespace) -> int:
    views = Views(options.http, options.ca, options.cert, options.key)
    if options.action == "clear":
        return clear(views, options)
    return take(views, options) if options.action == "import" else write(views, options)


def clear(views: Views, options: argparse.Namespace) -> int:
    if not options.yes and input(f"Remove everything in the vhost {options.vhost!r}, messages too? (yes/no) ") != "yes":
        return exits.REFUSED
    return dropped(views, {"vhosts": [{"name": options.vhost}]})


def dropped(views: Views, document: dict[str, Any]) -> int:
    """Remove what a document names, and say what was there."""
    answer = views.post("/definitions/delete", document, TIMEOUT_SECONDS)
    for each in answer["made"]:
        print(f"removed: {each}")
    if more := answer["done"] - len(answer["made"]):
        print(f"and {more} more")
    for each in answer["refused"]:
        print(f"fanlight: {each}", file=sys.stderr)
    return exits.REFUSED if answer["refused"] else exits.OK


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
    for name in document:
        if name not in LISTS and name not in ABOUT:
            print(f"note: {name!r} is ignored")
    for piece in pieces(document):
        answer = views.post("/definitions/import", {**piece, "dry_run": options.dry_run}, TIMEOUT_SECONDS)
        done += answer["done"]
        refused += len(answer["refused"])
        for each in answer["made"] if options.dry_run else ():
            print(f"would make: {each}")
        for each in answer["notes"]:
            print(f"note: {each}")
        for each in answer["refused"]:
            print(f"fanlight definitions: refused: {each}", file=sys.stderr)
    verb = "would be declared" if options.dry_run else "are declared"
    print(f"{done} policies, exchanges, queues and bindings {verb}, {refused} refused")
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
    document: dict[str, list[Any]] = {name: [] for name in EXPORTED}
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
