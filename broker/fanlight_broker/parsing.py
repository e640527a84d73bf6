"""argparse, with errors that suggest what was meant, and where the help is; files of rules, and fields of messages."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from fanlight_broker.config import Exit
from fanlight_permissions.reading import did_you_mean, file_text

__all__ = ["Parser", "commands_below", "did_you_mean", "file_text", "message_fields", "seconds"]


class Parser(argparse.ArgumentParser):
    """arguments  adds the arguments, when the parser is used: those of each setting take 0.1 ms"""

    def __init__(self, *args: Any, arguments: "Callable[[Parser], None] | None" = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._arguments = arguments

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        add, self._arguments = self._arguments, None
        if add is not None:
            add(self)
        words = sys.argv[1:] if args is None else list(args)
        self._check_flags(words)  # first: an unknown flag causes the other errors
        found, extras = super().parse_known_args(words, namespace)
        if extras:  # here, and not in the root parser, whose help would not have the flag
            self.error(f"not understood: {' '.join(extras)}")
        return found, extras

    def _check_flags(self, words: Sequence[str]) -> None:
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return  # a command: its own parser reads the rest
            name = word.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                self.error(f"there is no {name}{did_you_mean(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {str(value)!r}{did_you_mean(str(value), choices)}")
        raise argparse.ArgumentError(action, f"is one of {', '.join(choices)}; got {str(value)!r}")

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: {message}\ntry `{self.prog} --help`\n")


def commands_below(
    parser: Parser, help_format: type[argparse.HelpFormatter]
) -> Callable[[str, Callable[[argparse.Namespace], int], str, str], Parser]:
    """What adds a command below that of the parser: given its name, what runs it, a summary and a description."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str, description: str) -> Parser:
        each: Parser = commands.add_parser(
            name, help=summary, description=description, formatter_class=help_format, allow_abbrev=False
        )
        each.set_defaults(run=run)
        return each

    return command


def seconds(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0; got {word!r}")
    return number


def message_fields(text: str) -> Mapping[str, Any]:
    """The fields of a message, of the flag --fields. Raises ValueError."""
    import json  # for those who try a file of rules

    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--fields is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError('--fields is a JSON object, such as {"price": 120, "payload.a": 1}')
    return found
