"""`python -m fanlight_bench.demo`: real stock prices through a broker, to wildcard and exact subscribers.

Starts a broker, replays daily prices of the S&P 500 at a chosen speed, shows what arrives, and checks each delivery
against the oracle. Exit codes: 0 all is well, or interrupted; 1 something was lost, doubled or out of order; 3 no
broker.
"""

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import fanlight
from fanlight_bench.demo import quotes, screen
from fanlight_bench.demo.hints import hints
from fanlight_bench.demo.ledger import Account, Ledger
from fanlight_bench.demo.ports import usual_if_free
from fanlight_bench.launch import START_SECONDS, Broker, LaunchError, Patience

OK, FAULTY, NO_BROKER = 0, 1, 3
SCREEN_SECONDS = 0.5   # between renewals of the screen
SLICE_SECONDS = 0.02   # messages that fall due within it are published together
FINISH_SECONDS = 15.0  # for the last messages to arrive


def accounts() -> list[Account]:
    """The subscribers: both spellings, exact filters and wildcards, overlapping."""
    return [
        Account("stock.#", "amqp", "everything"),
        Account("stock.nasdaq.*", "amqp", "all of NASDAQ"),
        Account("stock/nyse/+", "mqtt", "all of NYSE, BRK.B too"),
        Account("stock.*.AAPL", "amqp", "Apple, wherever listed"),
        Account("stock.nasdaq.MSFT", "amqp", "Microsoft, exactly"),
        Account("stock/nyse/BRK.B", "mqtt", "Berkshire, a dot in it"),
    ]


async def demo(url: str, *, speed: float, seconds: float, plain: bool) -> Ledger:
    """Replay to all subscribers, and wait for the last delivery. Raises fanlight.FanlightError."""
    ledger = Ledger(accounts())
    async with contextlib.AsyncExitStack() as stack:

        async def connect(name: str) -> fanlight.Client:
            connecting = fanlight.connect(url, name=f"demo {name}", reconnect=False)
            return await stack.enter_async_context(connecting)

        subscribers = [await connect(account.filter) for account in ledger.accounts]
        subscriptions = [
            await client.subscribe(account.filter, syntax=account.syntax)
            for client, account in zip(subscribers, ledger.accounts, strict=True)
        ]
        publisher = await connect("publisher")
        showing, renew = screen.screen(ledger, plain=plain)
        arrived = asyncio.Event()
        try:
            with showing:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(_show(renew))]
                    for subscription, account in zip(subscriptions, ledger.accounts, strict=True):
                        tasks.append(group.create_task(_read(subscription, account, arrived)))
                    await _publish(publisher, ledger, speed, seconds)
                    await _finish(ledger, arrived)
                    # What a broker sent twice stands before the answer to this.
                    await asyncio.gather(*(client.flush() for client in subscribers))
                    for task in tasks:
                        task.cancel()
                renew()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    return ledger


async def _finish(ledger: Ledger, arrived: asyncio.Event) -> None:
    """Wait for the last deliveries; those that do not come in time stay due."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FINISH_SECONDS):
            while ledger.due:
                arrived.clear()
                await arrived.wait()


async def _publish(publisher: fanlight.Client, ledger: Ledger, speed: float, seconds: float) -> None:
    """Publish what is due until the time is over; speed 0: once through the sample, as fast as it goes."""
    async for quote in _due(list(quotes.read()), speed, seconds):
        ledger.publish(quote)
        await publisher.publish(quote.topic, quote.payload, headers=quote.headers, syntax=quote.syntax)
    await publisher.flush()


async def _due(sample: list[quotes.Quote], speed: float, seconds: float) -> AsyncIterator[quotes.Quote]:
    if speed == 0:
        for quote in sample:
            yield quote
        return
    rate = speed * len(sample) / len({quote.day for quote in sample})
    start, sent = time.monotonic(), 0
    endless = itertools.cycle(sample)
    while (elapsed := time.monotonic() - start) < seconds:
        due = int(elapsed * rate)
        for quote in itertools.islice(endless, due - sent):
            yield quote
        sent = due
        await asyncio.sleep(SLICE_SECONDS)


async def _read(subscription: fanlight.Subscription, account: Account, arrived: asyncio.Event) -> None:
    async for message in subscription:
        account.receive(message.topic, message.payload)
        arrived.set()


async def _show(renew: screen.Renew) -> None:
    while True:
        await asyncio.sleep(SCREEN_SECONDS)
        renew()


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench.demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--speed", type=float, default=2.0, metavar="DAYS", help="a second (%(default)s); 0: all at once")
    add("--seconds", type=float, default=60.0, help="how long, at most 3600 (%(default)s); Ctrl-C ends it")
    add("--url", help="of a running broker; without it, one is started on free ports")
    add(
        "--usual-ports", action="store_true",
        help="start it on the ports that clients use without an address (7420, 7421, 1883), if these are free",
    )
    add("--archive", type=Path, metavar="DIR", help="keep what passes there, for docs/pipeline.md: needs pyarrow")
    add(
        "--start-timeout", type=Patience.parse, default=START_SECONDS, metavar="SECONDS",
        help="how long the broker may take to start (%(default)g)",
    )
    add("--plain", action="store_true", help="lines, even on a terminal that could do better")
    options = parser.parse_args(arguments)
    if not (0 <= options.speed <= 1_000 and 0 < options.seconds <= 3_600):
        parser.error("--speed is 0 to 1000 days a second, --seconds up to 3600")
    if options.archive is not None and options.url is not None:
        parser.error("--archive is for the broker that is started here; start your own with fanlightd serve --archive")
    with contextlib.ExitStack() as stack:
        try:
            url = options.url
            if url is None:
                settings: dict[str, Any] = usual_if_free() if options.usual_ports else {}
                if options.archive is not None:
                    settings["archive"] = options.archive
                broker = stack.enter_context(Broker(**settings))
                url = broker.url
                print(f"A broker listens at {url}; its views are at {broker.http_url}", flush=True)
                if options.speed:  # else it is over before anybody has typed
                    print("\n".join(hints(url, broker.http_url, broker.mqtt_port)), flush=True)
            ledger = asyncio.run(demo(url, speed=options.speed, seconds=options.seconds, plain=options.plain))
        except (LaunchError, fanlight.FanlightError) as error:
            print(f"demo: {error}", file=sys.stderr)
            return NO_BROKER
        except KeyboardInterrupt:
            print("demo: interrupted", file=sys.stderr)
            return OK
    screen.summary(ledger)
    if options.archive is not None:
        print(f"What was published is in the archive {options.archive}: docs/pipeline.md goes on from here")
    return FAULTY if ledger.due or ledger.wrong else OK


if __name__ == "__main__":
    sys.exit(main())
