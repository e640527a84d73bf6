"""How a topic on the command line is spelled, where `--syntax` does not say: `auto`.

A `/`, or a word that is `+`, is MQTT's; all else is spelled with dots. What people bring along from other brokers and
what would quietly match nothing here is named in a line on standard error. With `--syntax amqp` or `mqtt` the words
are taken as they are, and nothing is said.
"""

import argparse
import sys
from collections.abc import Callable
from typing import cast

from ..topics import Syntax, SyntaxName
from . import text

AUTO = "auto"
CHOICES = (AUTO, "amqp", "native", "mqtt")
HELP = (
    "how topics are spelled; auto (the default): mqtt where there is a / or a word +, else amqp; "
    "amqp (or native): a.b, * and #; mqtt: a/b, + and #"
)

# Words that are no wildcards in a filter of this syntax, and the wildcard that is most likely meant.
MEANT: dict[SyntaxName, dict[str, str]] = {"amqp": {">": "#"}, "mqtt": {">": "#", "*": "+"}}
# Words that are ordinary in a topic and look like wildcards. In MQTT's spelling, the broker refuses + and #.
LITERAL: dict[SyntaxName, tuple[str, ...]] = {"amqp": ("*", "#", ">"), "mqtt": ("*", ">")}


def of_filter(options: argparse.Namespace, word: str) -> Syntax:
    """The syntax of a filter; warns of what is a wildcard elsewhere."""
    return _of(options, word, filter_warning)


def of_topic(options: argparse.Namespace, word: str) -> Syntax:
    """The syntax of a topic that is published or explained; warns of wildcards, which are ordinary words there."""
    return _of(options, word, topic_warning)


def inferred(word: str) -> SyntaxName:
    return "mqtt" if "/" in word or "+" in word.split(".") else "amqp"


def _of(options: argparse.Namespace, word: str, warn: Callable[[str, SyntaxName], str | None]) -> Syntax:
    if options.syntax != AUTO:
        return cast(Syntax, options.syntax)
    syntax = inferred(word)
    if warning := warn(word, syntax):
        print(f"fanlight {options.verb}: {warning}", file=sys.stderr, flush=True)
    return syntax


def filter_warning(word: str, syntax: SyntaxName) -> str | None:
    if syntax == "mqtt" and "/" not in word and word != "+":  # the broker refuses it: here is what to write
        dots = word.split(".")
        ours = text.quoted(".".join("*" if each == "+" else each for each in dots))
        return (
            f"{text.quoted(word)} has MQTT's wildcard + between dots: write {ours}, or {text.quoted('/'.join(dots))}"
        )
    separator = "/" if syntax == "mqtt" else "."
    words, meant = word.split(separator), MEANT[syntax]
    found = next((each for each in words if each in meant), None)
    if found is None:
        return None
    likely = text.quoted(separator.join(meant.get(each, each) for each in words))
    return f"in {text.quoted(word)}, {found} is an ordinary word: use {meant[found]}, as in {likely}"


def topic_warning(word: str, syntax: SyntaxName) -> str | None:
    words = word.split("/" if syntax == "mqtt" else ".")
    found = next((each for each in words if each in LITERAL[syntax]), None)
    if found is None:
        return None
    return f"in {text.quoted(word)}, {found} is an ordinary word: this is a topic, and wildcards are for filters"
