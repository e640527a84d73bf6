"""argparse, with errors that suggest what was meant, and where the help is; files of rules, and fields of messages."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fanlight_broker.config import Exit


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, if a known name is similar enough."""
    import difflib  # for those who mistype

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def seconds(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0; got {word!r}")
    return number


def file_text(path: Path, bytes_max: int) -> str:
    """The text of a file. Raises ValueError, which names the file and the line."""
    try:
        with path.open("rb") as file:
            raw = file.read(bytes_max + 1)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > bytes_max:
        raise ValueError(f"{path}: is longer than {bytes_max} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: is not UTF-8 (at byte {error.start})") from None


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
