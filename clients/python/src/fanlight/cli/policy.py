"""`fanlight policy`: AMQP's policies, listed, set and removed, as `rabbitmqctl set_policy` does.

They go over the broker's HTTP listener, as objects of RabbitMQ's file of definitions.
"""

import argparse
import json
import sys
from typing import Any

from . import exits
from .definitions import PAGE_ROWS, TIMEOUT_SECONDS, dropped
from .http import Views
from .parsing import Parser

OPERATORS = "operator_policy"
EXAMPLES = """\
examples:
  fanlight policy set short '^orders' '{"max-length": 1000, "overflow": "reject-publish"}' --apply-to queues
  fanlight policy set urgent '^orders-now' '{"message-ttl": 5000}' --priority 5 --vhost shop
  fanlight policy set ceiling '.*' '{"max-length": 100000}' --operator
  fanlight policy ls
  fanlight policy rm short

which keys there are, and how they meet arguments: docs/amqp-definitions.md
"""


def add_to(verbs: "argparse._SubParsersAction[Parser]", http: Any) -> None:
    """The verb. http: adds the options of the HTTP listener."""
    form = argparse.RawDescriptionHelpFormatter
    verb = verbs.add_parser(
        "policy", help="policies of AMQP queues and exchanges", description="Policies of AMQP queues and exchanges.",
        epilog=f"{EXAMPLES}\n{exits.EXPLAINED}", formatter_class=form,
    )
    actions = verb.add_subparsers(dest="action", required=True, metavar="COMMAND", parser_class=Parser)
    listing = actions.add_parser("ls", help="list them", description="List the policies of all vhosts.")
    listing.add_argument("--json", action="store_true", help="a line of JSON for each policy")
    setting = actions.add_parser("set", help="make or change one", description="Make or change a policy.")
    setting.add_argument("name", metavar="NAME")
    setting.add_argument("pattern", metavar="PATTERN", help="a regular expression, found in names")
    setting.add_argument("definition", metavar="DEFINITION", help='a JSON object: {"max-length": 1000}')
    setting.add_argument("--apply-to", default="all", metavar="WHAT", help="queues, exchanges or all [default: all]")
    setting.add_argument("--priority", type=int, default=0, metavar="N", help="the highest that matches applies (0)")
    removing = actions.add_parser("rm", help="remove one", description="Remove a policy.")
    removing.add_argument("name", metavar="NAME")
    for each in (setting, removing):
        each.add_argument("--vhost", default="/", metavar="VHOST", help="[default: /]")
        each.add_argument("--operator", action="store_true", help="an operator policy")
    for each in (listing, setting, removing):
        http(each)


def run(options: argparse.Namespace) -> int:
    views = Views(options.http, options.ca, options.cert, options.key)
    return {"ls": ls, "set": put, "rm": rm}[options.action](views, options)


def ls(views: Views, options: argparse.Namespace) -> int:
    offset: int | None = 0
    while offset is not None:
        page = views.get("/definitions", limit=PAGE_ROWS, offset=offset)
        for row in page["rows"]:
            for kind, each in row.items():
                if kind == "policies" or (kind == "parameters" and each["component"] == OPERATORS):
                    print(json.dumps({kind: each}) if options.json else line(each))
        offset = page["next"]
    return exits.OK


def line(row: dict[str, Any]) -> str:
    said = row.get("value", row)
    words = [row["vhost"], row["name"], said["pattern"], said["apply-to"], str(said["priority"])]
    words.append(json.dumps(dict(said["definition"])))
    return "  ".join([*words, "operator"] if "value" in row else words)


def row_of(options: argparse.Namespace, definition: dict[str, Any]) -> dict[str, Any]:
    """As a file of definitions with this policy alone."""
    said = {
        "pattern": getattr(options, "pattern", ""), "apply-to": getattr(options, "apply_to", "all"),
        "priority": getattr(options, "priority", 0), "definition": definition,
    }  # fmt: skip
    named = {"vhost": options.vhost, "name": options.name}
    if options.operator:
        return {"parameters": [{**named, "component": OPERATORS, "value": said}]}
    return {"policies": [{**named, **said}]}


def put(views: Views, options: argparse.Namespace) -> int:
    definition = json.loads(options.definition)
    if not isinstance(definition, dict):
        raise ValueError("the definition is no JSON object")
    answer = views.post("/definitions/import", row_of(options, definition), TIMEOUT_SECONDS)
    for each in answer["notes"]:
        print(f"note: {each}")
    for each in answer["refused"]:
        print(f"fanlight policy: refused: {each}", file=sys.stderr)
    return exits.REFUSED if answer["refused"] else exits.OK


def rm(views: Views, options: argparse.Namespace) -> int:
    return dropped(views, row_of(options, {}))
