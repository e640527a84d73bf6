"""Commotion: many clients of every policy that do anything in any order, and what must hold when they are gone.

What they do is random but the same in every run; how it interleaves is the machine's. Each subscriber checks what it
can see (order per publisher, no message of an ended subscription, whole frames); in the end nothing is left.
"""

import asyncio
import random
from typing import Any

import pytest

from tests.conftest import StartBroker
from tests.system.views import KIB, eventually
from tests.system.wire import Closed, Peer, Type, frame, number_of, publish, subscribe, unsubscribe

CLIENTS = 16
DEEDS = 80  # of each client, some of them bursts
POLICIES = ("drop_newest", "drop_oldest", "disconnect", "pause")
FILTERS = ("#", "c.*", "c.#.x", "c.1", "c.2.x", "#.x", "*.3", "c.*.x")


class Client:
    def __init__(self, port: int, number: int, seed: int) -> None:
        self.port = port
        self.number = number
        self.chance = random.Random(seed * 1_000 + number)
        self.sent = 0
        self.lives = 0
        self.next = 1
        self.live: dict[int, bool] = {}  # subscription -> in a group, where order is not promised
        self.last: dict[tuple[int, int, int], int] = {}  # subscription, publisher, its life -> number

    async def run(self) -> None:
        while self.lives < 2:
            self.lives += 1
            self.live.clear()
            self.last.clear()
            peer = await Peer.connect(
                self.port, client=f"c{self.number}", slow_policy=self.chance.choice(POLICIES),
                receive_buffer=self.chance.choice((None, 32 * KIB)),
            )
            try:
                for _ in range(DEEDS):
                    await self.deed(peer)
            except (Closed, ConnectionError):
                pass  # cut off, as a slow one may be
            finally:
                self.chance.choice((peer.close, peer.reset))()

    async def deed(self, peer: Peer) -> None:
        what = self.chance.random()
        if what < 0.30:
            count = self.chance.choice((1, 1, 5, 60))
            size = self.chance.choice((16, 200, 1_000, 20_000))
            await peer.send(*(self.message(size) for _ in range(count)))
        elif what < 0.50 and len(self.live) < 8:
            await self.subscribe(peer)
        elif what < 0.60 and self.live:
            number = self.chance.choice(list(self.live))
            request = peer.next_request()
            await peer.send(unsubscribe(request, number))
            await self.read(peer, until=(Type.OK, Type.ERROR), request=request)
            self.live.pop(number, None)
        elif what < 0.70 and self.live:
            await peer.send(frame(Type.CREDIT, self.chance.choice(list(self.live)), 50))
        elif what < 0.95:
            token = peer.next_request()
            await peer.send(frame(Type.PING, token))
            await self.read(peer, until=(Type.PONG,), request=token)
        else:
            await asyncio.sleep(self.chance.random() * 0.05)  # it reads nothing: this is what makes it slow

    def message(self, size: int) -> bytes:
        self.sent += 1
        mark = b"".join(n.to_bytes(8, "big") for n in (self.number, self.lives, self.sent))
        topic = f"c.{self.chance.randrange(4)}" + self.chance.choice(("", ".x"))
        return publish(topic, mark + bytes(size), self.chance.choice((None, None, 1_000_000)))

    async def subscribe(self, peer: Peer) -> None:
        options: dict[str, Any] = self.chance.choice(
            ({}, {"group": "g"}, {"credit": 20}, {"after": 30}, {"no_echo": True}, {"credit": 5, "group": "h"})
        )
        number, self.next = self.next, self.next + 1
        request = peer.next_request()
        self.live[number] = "group" in options
        await peer.send(subscribe(request, number, self.chance.choice(FILTERS), **options))
        await self.read(peer, until=(Type.OK,), request=request)

    async def read(self, peer: Peer, until: tuple[Type, ...], request: int) -> None:
        """Read up to an answer, and look at what comes before it."""
        while True:
            got = await peer.frame()
            if got[0] == Type.MESSAGE:
                self.check(got)
            elif got[0] == Type.ENDED:
                del self.live[got[1]]
            elif got[0] in until and got[1] == request:
                return
            elif got[0] == Type.GOODBYE:
                assert got[1] == "slow_consumer", got
            elif got[0] == Type.ERROR:
                assert got[2] in ("protocol_error", "no_such_subscription"), got  # CREDIT without a credit limit
            else:
                assert got[0] == Type.RECEIPT, got

    def check(self, got: list[Any]) -> None:
        number, payload = got[1], got[3]
        assert number in self.live, f"a message of subscription {number}, which is not in force"
        publisher, life, order = (number_of(payload[at : at + 8]) for at in (0, 8, 16))
        if not self.live[number]:
            assert self.last.get((number, publisher, life), 0) < order
            self.last[number, publisher, life] = order


@pytest.mark.parametrize("seed", [1])
async def test_nothing_is_left_when_the_commotion_is_over(start_broker: StartBroker, seed: int) -> None:
    broker = start_broker(
        outbox_bytes_max=128 * KIB, frame_bytes_max=64 * KIB, control_bytes_max=16 * KIB,
        pause_allowed=True, pause_seconds_max=0.5,
        linger_seconds_max=0.5, outboxes_bytes_max=1024 * KIB, routes_max=16, pending_messages_max=20,
    )
    async with asyncio.timeout(60):
        await asyncio.gather(*(Client(broker.port, number, seed).run() for number in range(CLIENTS)))
    seen = await eventually(broker, lambda now: now["connections_closed"] == now["connections_accepted"])
    for gauge in ("connections", "subscriptions", "outbox_bytes", "outboxes_blocking"):
        assert seen[gauge] == 0, gauge
    assert seen["subscribes"] == seen["unsubscribes"]
    assert seen["messages_in"] > 500
    assert seen["protocol_errors"] == 0
    assert seen["slow_consumers"] > 0
