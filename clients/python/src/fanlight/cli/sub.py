"""`fanlight sub`: a line for each message, until interrupted, or `--count`, or silence."""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable

from ..client import Client
from ..connecting import connect
from ..errors import FanlightError, SubscriptionEnded
from ..message import Message
from ..subscription import Subscription
from . import exits, spelling, text
from .streams import Output


class _Printing:
    """What all subscriptions of one call share: the output, and how many are still to come."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.left: int | None = options.count
        self.came = asyncio.Event()  # for the clock of --timeout
        self._output = Output()
        self._write = self._writer(options)

    def _writer(self, options: argparse.Namespace) -> Callable[[Message, bool], None]:
        """What writes a message; its second argument is whether to flush."""
        output = self._output
        if options.raw:
            return lambda message, flush: output.write_bytes(message.payload, flush=flush)
        form = text.as_json if options.json else text.payload if options.payload_only else text.line
        return lambda message, flush: output.write(form(message), flush=flush)

    async def all_of(self, subscription: Subscription) -> None:
        """Print until it ends, or enough were printed."""
        async for message in subscription:
            # What waits already is written together: a line on its own goes out at once.
            self._print(message, flush=subscription.pending[0] == 0)
            if self.left == 0:
                return

    def _print(self, message: Message, *, flush: bool) -> None:
        if self.left is not None:
            if self.left == 0:
                return
            self.left -= 1
        self._write(message, flush or self.left == 0)
        self.came.set()


async def run(options: argparse.Namespace) -> int:
    losses = _Losses(replaying=options.since is not None)
    async with connect(
        options.url, name=options.name, ca=options.ca, certificate=options.cert, key=options.key,
        on_disconnect=losses.lost, on_reconnect=losses.again,
    ) as client:
        printing = _Printing(options)
        subscriptions = [await _begun(client, filter, options) for filter in options.filters]
        if options.ready:
            print("fanlight sub: subscribed", file=sys.stderr, flush=True)
        tasks = {asyncio.create_task(printing.all_of(subscription)) for subscription in subscriptions}
        try:
            return await _until_done(printing, tasks, options.timeout)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            sys.stdout.flush()


async def _begun(client: Client, filter: str, options: argparse.Namespace) -> Subscription:
    syntax = spelling.of_filter(options, filter)
    if options.since is not None:
        return await client.replay(text.topic(filter), since=options.since, where=options.where, syntax=syntax)
    return await client.subscribe(
        text.topic(filter),
        syntax=syntax,
        group=options.group,
        where=options.where,
        # Neither side sends more than is printed; more than one filter can share a count.
        after=options.count if len(options.filters) == 1 else None,
    )


async def _until_done(printing: _Printing, tasks: set["asyncio.Task[None]"], silence: float | None) -> int:
    while True:
        printing.came.clear()
        heard = asyncio.create_task(printing.came.wait())
        try:
            done, _ = await asyncio.wait(
                {*tasks, heard} if silence is not None else tasks,
                timeout=silence,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            heard.cancel()
        for task in done & tasks:
            error = task.exception()
            if error is not None and not isinstance(error, SubscriptionEnded):
                raise error
        if done & tasks:
            return exits.OK
        if not done:
            print(f"fanlight sub: nothing came for {silence:g} s", file=sys.stderr)
            return exits.TIMED_OUT


class _Losses:
    """Says when the connection is lost, what happens then, and when it is there again."""

    def __init__(self, *, replaying: bool) -> None:
        self._missed = "" if replaying else "; what is published meanwhile is missed"
        self._since = 0.0

    def lost(self, error: FanlightError) -> None:
        self._since = time.monotonic()
        print(
            f"fanlight sub: {error}. Trying to connect again until it works or Ctrl-C{self._missed}",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def again(self, client: Client) -> None:
        seconds = time.monotonic() - self._since
        print(f"fanlight sub: connected again to {client.address} after {seconds:.1f} s", file=sys.stderr, flush=True)
