"""What each subscriber must get, message by message, and whether it got it.

The oracle is the plain matcher of the tests (matchcore.reference), asked once per topic and filter; it knows
nothing of the broker. So the summary can say that nothing was lost, doubled or out of order, and mean it.
"""

from collections import deque
from dataclasses import dataclass, field

from fanlight_bench.demo.quotes import Quote, Syntax
from matchcore.reference import matches


@dataclass
class Account:
    """One subscriber: what it wants, and what it still must get, oldest first."""

    filter: str
    syntax: Syntax
    meaning: str
    due: deque[Quote] = field(default_factory=deque)  # bounded by what the broker and the sockets hold
    received: int = 0
    wrong: int = 0  # messages that were not the next one due
    last: str = ""

    def receive(self, topic: str | bytes, payload: bytes) -> None:
        """Book a message."""
        self.received += 1
        self.last = f"{topic!s} {payload.decode(errors='replace')}"
        if self.due and (self.due[0].topic, self.due[0].payload) == (topic, payload):
            self.due.popleft()
        else:
            self.wrong += 1


class Ledger:
    """All accounts."""

    def __init__(self, accounts: list[Account]) -> None:
        self.accounts = accounts
        self.published = 0
        self.day = ""
        self._wanted_by: dict[str, list[Account]] = {}

    def publish(self, quote: Quote) -> None:
        """Book what is about to be published: before it is, for the answer may be quick."""
        if quote.topic not in self._wanted_by:
            self._wanted_by[quote.topic] = [
                account
                for account in self.accounts
                if matches(account.filter, account.syntax, quote.topic, quote.syntax)
            ]
        for account in self._wanted_by[quote.topic]:
            account.due.append(quote)
        self.published += 1
        self.day = quote.day

    @property
    def received(self) -> int:
        return sum(account.received for account in self.accounts)

    @property
    def due(self) -> int:
        return sum(len(account.due) for account in self.accounts)

    @property
    def wrong(self) -> int:
        return sum(account.wrong for account in self.accounts)
