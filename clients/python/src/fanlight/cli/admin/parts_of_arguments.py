"""What several words of `fanlight admin` have: groups of words, --namespace, --syntax, --yes."""

import argparse
from typing import Any

from .. import spelling
from ..parsing import Parser


def group(actions: Any, name: str, about: str) -> Any:
    made = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    return made.add_subparsers(dest="part", required=True, metavar="COMMAND", parser_class=Parser)


def namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--namespace", metavar="NAME", help="where the name or topic is looked for [the root]")


def syntax(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--syntax", choices=spelling.CHOICES, default=spelling.AUTO, help=spelling.HELP)


def yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def listed(parser: argparse.ArgumentParser, what: str) -> None:
    """It lists what `ls` does under this name."""
    parser.set_defaults(what=what, only=[], q=None, sort=None, desc=False, limit=None)
