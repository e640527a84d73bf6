"""Verbs that other distributions bring: entry points of the group `fanlight.commands`.

An entry point's name is the verb, and its object is called with the words behind the verb; it returns the exit code.
Nothing of theirs is imported before its verb is asked for. The SDK's own verbs cannot be replaced.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points

from . import exits
from .streams import silence_stdout

GROUP = "fanlight.commands"
# Verbs that are always named in the help, what they do, and the distribution that has them.
KNOWN = {"bench": ("measure a broker (the load harness)", "fanlight-bench")}


def names() -> dict[str, str]:
    """The verbs there are or could be, with a line of help for each."""
    found = {entry.name: f"from {_distribution(entry)}" for entry in entry_points(group=GROUP)}
    return {**found, **{name: line for name, (line, _) in KNOWN.items()}}


def run(verb: str, arguments: Sequence[str]) -> int:
    """Hand over to whoever has this verb; one that is not installed is explained."""
    for entry in entry_points(group=GROUP, name=verb):
        try:
            command: Callable[[list[str]], int | None] = entry.load()
        except (ImportError, AttributeError) as error:
            print(f"fanlight {verb}: {_distribution(entry)} has it, but it cannot be loaded: {error}", file=sys.stderr)
            return exits.USAGE
        try:
            return command(list(arguments)) or exits.OK
        except KeyboardInterrupt:
            return exits.INTERRUPTED
        except BrokenPipeError:
            silence_stdout()
            return exits.OK  # whoever read has what he wanted
    _, distribution = KNOWN[verb]
    print(
        f"fanlight {verb}: this verb comes with {distribution}, which is not installed beside this "
        "command; in a checkout of the project, `make setup` installs it",
        file=sys.stderr,
    )
    return exits.USAGE


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
