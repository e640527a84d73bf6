"""How answers are shown: tables on a terminal, a line of JSON for each row in a pipe; and `--watch`."""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from .. import exits, text
from .resources import cell, table

CLEAR = "\x1b[H\x1b[2J"  # to the upper left, and clear the screen
NOT_A_TERMINAL = 1_000_000


def as_json(options: argparse.Namespace) -> bool:
    """Whether to write JSON: as asked, or where nobody looks."""
    return bool(options.json or not (options.table or sys.stdout.isatty()))


def rows(options: argparse.Namespace, found: Iterable[dict[str, Any]], columns: tuple[tuple[str, str], ...]) -> None:
    if as_json(options):
        for row in found:
            line(row)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else NOT_A_TERMINAL
    print("\n".join(table(list(found), columns, width)))


def document(options: argparse.Namespace, found: dict[str, Any]) -> None:
    """One thing: a line for each key, or JSON."""
    if as_json(options):
        line(found)
        return
    width = max((len(name) for name in found), default=0)
    for name in found:
        if name != "href":
            print(f"{name:{width}}  {cell(found, name)}")


def done(options: argparse.Namespace, answer: dict[str, Any], said: str) -> int:
    """What was done, in words or as the broker has answered."""
    if as_json(options):
        line(answer)
    else:
        print(said)
    return exits.OK


def line(row: dict[str, Any]) -> None:
    print(json.dumps(row, ensure_ascii=False), flush=True)


def watched(options: argparse.Namespace, show: Callable[[], None]) -> int:
    """Show it once, or again and again with --watch, until interrupted."""
    while True:
        if options.watch and not as_json(options) and sys.stdout.isatty():
            print(CLEAR, end="")
        show()
        sys.stdout.flush()
        if not options.watch:
            return exits.OK
        time.sleep(options.watch)


def agreed(options: argparse.Namespace, question: str) -> bool:
    """Ask at a terminal before something is lost; scripts have said it by running."""
    if options.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def not_done() -> int:
    """Somebody has not agreed."""
    print("fanlight admin: nothing was changed", file=sys.stderr)
    return exits.REFUSED


def name(word: str) -> str:
    """A name of the command line in a sentence."""
    return text.quoted(word)
