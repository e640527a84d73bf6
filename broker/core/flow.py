"""Flow: consumers that fall behind, and the publishers that wait for them.

    outbox over its limit --> attention --> logged once, disconnected if its policy says so
    publisher held back   --> waits on the outbox that blocks it; goes on when that has drained, or is gone
    outbox blocking for longer than pause_seconds_max --> its client is cut off, unless it goes on acknowledging

Dropping itself happens in the outbox, per message and compiled; here is what happens once per slow consumer.
"""

from typing import Final

import structlog

from broker.core.client import Client
from broker.core.limits import Limits
from broker.wire.ledger import Ledger
from broker.wire.outbox import Outbox

log: Final = structlog.stdlib.get_logger("flow")


class Flow:
    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self.ledger = ledger
        self.limits = limits
        self.publishers_paused = 0
        self.slow_consumers = 0
        self.slow_consumers_disconnected = 0
        self._waiting: dict[Outbox, list[Client]] = {}  # by the outbox that holds them back
        self._settled: dict[Outbox, int] = {}  # acknowledgements of those that hold back, when they were asked last
        self._refilling: set[Outbox] = set()
        self._since: dict[Outbox, float] = {}

    def attend(self) -> None:
        """Hear of the outboxes that overflowed in this turn, each once in a connection's life."""
        for outbox in self.ledger.take_attention():
            client: Client = outbox.owner
            if outbox.closed:
                continue
            self.slow_consumers += 1
            log.warning(
                "slow_consumer", connection=client.number, client=client.name, address=client.address,
                policy=outbox.policy, outbox_bytes=outbox.size, limit=outbox.limit,
            )
            if outbox.policy == "disconnect":
                self._cut_off(client, f"more than {outbox.limit} bytes unread (outbox_bytes_max)")

    def hold(self, publisher: Client, blocker: Outbox, now: float) -> None:
        """A publisher waits until `blocker` has drained."""
        self.publishers_paused += 1
        self._waiting.setdefault(blocker, []).append(publisher)
        consumer: Client | None = blocker.owner
        if consumer is None:
            return  # no client: a store that has no room. It is not cut off, however long it takes
        self._since.setdefault(blocker, now)
        if consumer.session is not None:
            self._settled.setdefault(blocker, consumer.session.window.settled)

    def drained(self, outbox: Outbox) -> list[Client]:
        """An outbox holds nobody back any more: the publishers that may go on, in the order they came.

        The outbox's own client is among them if it waited to send it more (`refill`).
        """
        refilled = [outbox.owner] if outbox in self._refilling else []
        self._refilling.discard(outbox)
        if outbox.pausing:
            return refilled
        self._since.pop(outbox, None)
        self._settled.pop(outbox, None)
        return refilled + self._waiting.pop(outbox, [])

    def refill(self, outbox: Outbox) -> None:
        """Let an outbox's own client hear when everything in it is out: there is more to come."""
        outbox.ask_for_more()
        self._refilling.add(outbox)

    def forget(self, client: Client) -> list[Client]:
        """A client is gone: it waits no longer, and nobody waits for it. Returns the publishers that may go on."""
        for blocker, waiting in list(self._waiting.items()):
            if client in waiting:
                waiting.remove(client)
                if not waiting:
                    # A slow consumer that holds nobody back may take its time.
                    del self._waiting[blocker]
                    self._since.pop(blocker, None)
        self._refilling.discard(client.outbox)
        self._settled.pop(client.outbox, None)
        client.outbox.drained()  # lowers the ledger's count if it was blocking
        return self.drained(client.outbox)

    def sweep(self, now: float) -> None:
        """Cut off the clients that have held others back for too long."""
        for outbox, since in list(self._since.items()):
            if now - since >= self.limits.pause_seconds_max:
                if self._progresses(outbox):
                    self._since[outbox] = now
                    continue
                del self._since[outbox]
                self._cut_off(
                    outbox.owner, f"held publishers back for {now - since:.1f} s (pause_seconds_max)"
                )

    def _progresses(self, outbox: Outbox) -> bool:
        """Has its client acknowledged something since it was asked last? It is slow then, and not stuck."""
        client: Client = outbox.owner
        if client.session is None or not outbox.crowded:
            return False
        settled = client.session.window.settled
        before, self._settled[outbox] = self._settled.get(outbox), settled
        return settled != before

    def _cut_off(self, client: Client, text: str) -> None:
        self.slow_consumers_disconnected += 1
        log.warning(
            "slow_consumer_disconnected", connection=client.number, client=client.name, reason=text,
            lost=client.outbox.messages,
        )
        client.speaker.cut_off("slow_consumer", text)
