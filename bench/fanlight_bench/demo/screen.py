"""What the demo shows while it runs: a table that renews itself with rich, or plain lines without."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fanlight_bench.demo.ledger import Account, Ledger

Renew = Callable[[], None]
LINE_WIDTH = 140  # of a message that is shown; rows are longer


class Rates:
    """Messages a second, of each account and of the publisher, since the last look."""

    def __init__(self) -> None:
        self._time = time.monotonic()
        self._counts: dict[str, int] = {}

    def look(self, ledger: Ledger) -> dict[str, float]:
        now = time.monotonic()
        counts = {account.filter: account.received for account in ledger.accounts}
        counts["published"] = ledger.published
        counts["received"] = ledger.received
        seconds = max(now - self._time, 1e-6)
        rates = {name: (count - self._counts.get(name, 0)) / seconds for name, count in counts.items()}
        self._time, self._counts = now, counts
        return rates


def screen(ledger: Ledger, *, plain: bool) -> tuple[AbstractContextManager[Any], Renew]:
    """A context in which the screen is up, and a function that renews it."""
    rates = Rates()
    if not plain and sys.stdout.isatty():
        try:
            from rich.live import Live
        except ImportError:
            pass
        else:
            live = Live(page(ledger, rates.look(ledger)), auto_refresh=False)
            return live, lambda: live.update(page(ledger, rates.look(ledger)), refresh=True)
    return nullcontext(), lambda: _lines(ledger, rates.look(ledger))


def page(ledger: Ledger, rates: dict[str, float]) -> Any:
    """The screen, for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = (
        f"{ledger.day}   published {ledger.published:,} ({rates['published']:,.0f}/s)   "
        f"delivered {ledger.received:,} ({rates['received']:,.0f}/s)"
    )
    table = Table()
    table.add_column("filter")
    table.add_column("what it gets")
    table.add_column("received", justify="right")
    table.add_column("per s", justify="right")
    for account in ledger.accounts:
        count, rate = f"{account.received:,}", f"{rates[account.filter]:,.0f}"
        table.add_row(account.filter, account.meaning, count, rate)
    # As Text: what comes over the wire is shown, and is not rich's markup.
    last = [Text(account.last, no_wrap=True, overflow="ellipsis") for account in ledger.accounts if account.last]
    # A separate title: the table's own would be as narrow as the table.
    return Group(Text(title, style="italic"), table, Text("the last message of each:"), *last)


def _lines(ledger: Ledger, rates: dict[str, float]) -> None:
    print(
        f"{ledger.day}  published {ledger.published:>7,} {rates['published']:>8,.0f}/s   "
        f"delivered {ledger.received:>8,} {rates['received']:>8,.0f}/s"
    )
    # One subscriber a line, in turns: all of them a second would be too much to read.
    shown: Account = ledger.accounts[int(time.monotonic()) % len(ledger.accounts)]
    if shown.last:
        print(f"    {shown.filter:<20} {shown.last}"[:LINE_WIDTH])


def summary(ledger: Ledger) -> None:
    """The last word: what came to whom, and whether anything is missing."""
    print()
    for account in ledger.accounts:
        print(f"{account.filter:<20} {account.syntax}  {account.received:>8,} received   {account.meaning}")
    print(f"\n{ledger.published:,} published, {ledger.received:,} delivered; ", end="")
    if ledger.due or ledger.wrong:
        print(f"{ledger.due:,} MISSING, {ledger.wrong:,} not in their turn")
    else:
        print("nothing lost, nothing twice, all in order (checked message by message)")
