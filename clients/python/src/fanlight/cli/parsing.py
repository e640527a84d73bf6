"""argparse, with errors that say what was most likely meant and where the help for it is."""

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from . import exits

_ADDRESS = "the broker's address goes into --url, as in --url fanlight://user:password@host:7420"
# Flags of mosquitto_pub and mosquitto_sub, and what to write instead.
MOSQUITTO = {
    "-h": f"-h is for help; {_ADDRESS}",
    "-p": _ADDRESS,
    "-u": _ADDRESS,
    "-P": _ADDRESS,
    "-i": "the client's name is --name",
    "-t": "the topic is a word of its own: `fanlight pub TOPIC PAYLOAD`, `fanlight sub FILTER`",
    "-m": "the payload is a word of its own: `fanlight pub TOPIC PAYLOAD`",
    "-f": "a file's content is published by --file",
    "-s": "all of standard input is published by --stdin-whole",
    "-l": "without a payload, each line of standard input is published",
    "-q": "this protocol has no QoS; `pub --receipt` waits until the broker has the message",
    "-C": "the number of messages is --count",
    "-W": "the seconds to wait are --timeout",
    "-v": "`sub` always shows the topic; without it: --payload-only",
}


class Parser(argparse.ArgumentParser):
    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        words = sys.argv[1:] if args is None else list(args)
        self._check_flags(words)  # first: an unknown flag causes the other errors
        found, extras = super().parse_known_args(words, namespace)
        if len(extras) == 1 and extras[0][:1] != "-" and getattr(found, "payload", "") is None:
            found.payload = extras.pop()  # `pub TOPIC --receipt PAYLOAD`: argparse gives an optional word up too soon
        if extras:  # here, and not in the root parser, whose help would not have the flag
            self.error(f"not understood: {' '.join(extras)}; a text with spaces needs quotes")
        return found, extras

    def _check_flags(self, words: Sequence[str]) -> None:
        for place, word in enumerate(words):
            if self._subparsers is not None and not word.startswith("-"):
                return  # a verb: what follows is its parser's
            if word == "--":
                return
            if word == "-h" and self._subparsers is None and words[place + 1 :] and words[place + 1][:1] != "-":
                self.error(MOSQUITTO["-h"])  # mosquitto's host: there is a word behind it
            if not word.startswith("-") or not word.lstrip("-")[:1].isalpha():
                continue
            name = word.partition("=")[0]
            if not any(known.startswith(name) for known in self._option_string_actions):
                self.error(f"there is no {name}{self._instead(name)}")

    def _instead(self, name: str) -> str:
        if name[:2] in MOSQUITTO and not name.startswith("--"):
            return f"; {MOSQUITTO[name[:2]]}"
        return did_you_mean(name, (each for each in self._option_string_actions if each.startswith("--")))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no verb {str(value)!r}{did_you_mean(str(value), choices)}")
        raise argparse.ArgumentError(action, f"is one of {', '.join(choices)}; got {str(value)!r}")

    def error(self, message: str) -> NoReturn:
        self.exit(exits.USAGE, f"{self.prog}: {message}\ntry `{self.prog} --help`\n")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, where something is near enough."""
    names = list(known)
    near = [each for each in names if name.startswith(each)] or difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def count(word: str) -> int:
    """A whole number of 1 or more."""
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1; got {word!r}")
    return number


def seconds(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0; got {word!r}")
    return number
