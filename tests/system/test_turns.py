"""Turns: a flood from one connection is processed in pieces, and the others get theirs between them.

No times are measured. A neighbour's questions are answered one after the other while the flood is being processed: if
the broker went through it in one go, there would be one answer at most before its end.
"""

import asyncio
from collections.abc import Callable

import pytest

from tests.conftest import StartBroker, TestBroker
from tests.system.wire import Peer, Type, ping, publish, subscribe, unsubscribe

COUNT = 40_000
FLOODS: dict[str, Callable[[int], bytes]] = {
    "subscriptions": lambda n: subscribe(None, n, f"flood.{n}.*.{n % 7}.#"),
    "topics never seen before": lambda n: publish(f"flood.{n}.{n % 7}"),
    "filters come and go": lambda n: subscribe(None, n, "flood.#") + unsubscribe(None, n),
    "refusals": lambda n: unsubscribe(None, n),
}


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker) -> TestBroker:
    return start_module_broker(refusals_per_second_max=0)  # a rate would hold the refused one back for two minutes


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
async def test_neighbours_are_answered_while_a_flood_is_processed(
    broker: TestBroker, flood: Callable[[int], bytes]
) -> None:
    octets = b"".join(flood(n) for n in range(COUNT))
    async with await Peer.connect(broker.port) as flooding, await Peer.connect(broker.port) as neighbour:

        async def pour() -> None:
            await flooding.send(octets, ping(1))

        async def drink() -> None:
            await flooding.until(Type.PONG, 1)

        done = asyncio.gather(pour(), drink())
        answered = 0
        while not done.done():
            await neighbour.settle()
            answered += 1
        await done
        # Some hundred when the machine is idle; one would do if the flood had been gone through in one go.
        assert answered > 3
