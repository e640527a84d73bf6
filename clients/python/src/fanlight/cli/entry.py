"""`main`: the verb's function is run, and what it raised becomes a line and an exit code."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from .. import reasons
from ..errors import FanlightError
from . import (
    admin,
    completion,
    contexts,
    definitions,
    delayed,
    exits,
    explain,
    others,
    policy,
    pub,
    queue,
    reply,
    request,
    sub,
    top,
)
from .arguments import parser
from .descriptors import open_missing
from .streams import silence_stdout

ASYNC: dict[str, Callable[[Any], Coroutine[Any, Any, int]]] = {
    "pub": pub.run,
    "sub": sub.run,
    "request": request.run,
    "reply": reply.run,
    "queue": queue.run,
    "delayed": delayed.run,
}
BLOCKING: dict[str, Callable[[Any], int]] = {
    "top": top.run, "explain": explain.run, "definitions": definitions.run, "policy": policy.run, "admin": admin.run,
    "context": contexts.run, "completion": completion.run,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `exits`)."""
    open_missing()
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] not in ASYNC and words[0] not in BLOCKING and words[0] in others.names():
        return others.run(words[0], words[1:])  # its options are its own, and argparse would look at them
    options = parser().parse_args(words)
    logging.getLogger("fanlight").addHandler(logging.NullHandler())  # the verbs say what is to be said
    try:
        contexts.apply(options)
        if options.verb in ASYNC:
            return _run(ASYNC[options.verb](options))
        return BLOCKING[options.verb](options)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return exits.OK  # whoever read has what he wanted, as in `fanlight sub '#' | head`
    except (FanlightError, ValueError, TypeError, OSError) as error:
        print(f"fanlight {options.verb}: {_said(error)}", file=sys.stderr)
        return exits.code(error)


def _said(error: Exception) -> str:
    if isinstance(error, FanlightError) or not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {reasons.of(error)}" if error.filename else reasons.of(error)


def _run(coroutine: Coroutine[Any, Any, int]) -> int:
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        return runner.run(coroutine)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed; None: asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
