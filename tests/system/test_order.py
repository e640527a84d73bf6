"""Order and sharing over real sockets, with everything done that could upset them.

A PUBLISH takes the compiled lane when its route is known and it has no reply topic, and Python's otherwise: receipts,
reply topics, new topics and changing subscriptions make each publisher's messages switch between the two all the time.
"""

import asyncio
from collections import Counter

import pytest

from tests.conftest import StartBroker, TestBroker
from tests.system.views import KIB, eventually, stats
from tests.system.wire import (
    SMALL_BUFFER,
    Peer,
    Peers,
    Type,
    number_of,
    numbered,
    ping,
    publish,
    subscribe,
    unsubscribe,
)


@pytest.fixture(scope="module")
def broker(module_broker: TestBroker) -> TestBroker:
    return module_broker


def switching(prefix: str, publisher: int, count: int) -> bytes:
    """Messages of which every third wants a receipt, every fifth a reply, and every seventh has a topic of its own."""
    frames = []
    for number in range(count):
        topic = f"{prefix}.{publisher}.{number}" if number % 7 == 0 else f"{prefix}.{publisher}"
        more = (None, 0, "answers.here") if number % 5 == 0 else ()
        payload = publisher.to_bytes(8, "big") + number.to_bytes(8, "big")
        frames.append(publish(topic, payload, number + 1 if number % 3 == 0 else None, *more))
    return b"".join(frames)


async def test_each_publishers_messages_come_in_its_order_whatever_lane_they_take(broker: TestBroker) -> None:
    publishers, count = 6, 3_000
    filters = ["lanes.#", "lanes.*", "#", "lanes.3.#", "lanes.3"]
    async with Peers() as senders, await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as fickle:
        for number, pattern in enumerate(filters):
            await reader.subscribe(number, pattern, no_echo=False)
        for _ in range(publishers):
            senders.append(await Peer.connect(broker.port))

        changing = True

        async def change() -> None:
            # Each change forgets the routes in use, so that the next message on them is Python's again.
            number = 0
            while changing:
                number += 1
                await fickle.subscribe(number, f"lanes.{number % publishers}.*.never.#")
                await fickle.subscribe(1_000_000, f"lanes.{number % publishers}", credit=0)
                request = fickle.next_request()
                await fickle.send(unsubscribe(None, 1_000_000), unsubscribe(request, number))
                await fickle.expect(Type.OK, request)

        async def send(peer: Peer, publisher: int) -> list[list[object]]:
            wanted = len(range(0, count, 3))
            await peer.send(switching("lanes", publisher, count))
            return [await peer.expect(Type.RECEIPT) for _ in range(wanted)]

        changes = asyncio.create_task(change())
        sending = asyncio.gather(*(send(peer, i) for i, peer in enumerate(senders)))

        received: dict[tuple[int, int], list[int]] = {}
        long_ones = len(range(0, count, 7))
        total = publishers * (count + (count - long_ones) + count) + count + (count - long_ones)
        for _ in range(total):
            message = await reader.message()
            publisher, number = number_of(message.payload), number_of(message.payload[8:])
            received.setdefault((message.subscription, publisher), []).append(number)
        changing = False
        receipts = await sending
        await changes

    everything = list(range(count))
    short = [number for number in everything if number % 7]
    for publisher in range(publishers):
        assert received[0, publisher] == everything
        assert received[1, publisher] == short
        assert received[2, publisher] == everything
        # Requests of one connection are answered in their order.
        assert [request for _, request, _ in receipts[publisher]] == [n + 1 for n in everything if n % 3 == 0]
    assert received[3, 3] == everything
    assert received[4, 3] == short
    assert len(received) == 3 * publishers + 2


async def test_a_receipt_comes_behind_the_messages_it_confirms(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "echo.#")
        await peer.send(*(publish(f"echo.{n % 3}", payload, n + 1) for n, payload in enumerate(numbered(range(300)))))
        for number in range(300):
            assert number_of((await peer.message()).payload) == number
            assert await peer.expect(Type.RECEIPT, number + 1) == [Type.RECEIPT, number + 1, 1]


async def test_a_group_gets_each_message_once_while_members_come_and_go(broker: TestBroker) -> None:
    count = 6_000
    async with Peers() as members, await Peer.connect(broker.port) as publisher:
        for _ in range(4):
            member = await Peer.connect(broker.port)
            await member.subscribe(1, "jobs.*", group="workers")
            members.append(member)
        got: list[list[int]] = [[] for _ in members]

        async def work(index: int) -> None:
            """Take messages; leave and join again after every 100, as one that is restarted does."""
            member, own = members[index], got[index]
            joined = 1
            while True:
                frame = await member.frame()
                if frame[0] == Type.MESSAGE:
                    own.append(number_of(frame[3]))
                    if frame[1] == joined and len(own) // 100 >= joined:
                        joined += 1
                        await member.send(
                            unsubscribe(None, joined - 1), subscribe(None, joined, "jobs.*", group="workers")
                        )
                elif frame[0] == Type.PONG:
                    return

        working = asyncio.gather(*map(work, range(4)))
        for start in range(0, count, 500):
            numbers = range(start, start + 500)
            await publisher.send(*map(publish, [f"jobs.{n % 5}" for n in numbers], numbered(numbers)))
            await publisher.settle()
        for member in members:
            await member.send(ping(1))
        await working

    taken = Counter(number for own in got for number in own)
    assert taken == Counter(range(count))
    assert all(own == sorted(own) for own in got)
    assert all(own for own in got)


async def test_a_stalled_member_is_passed_over(start_broker: StartBroker) -> None:
    broker = start_broker(outbox_bytes_max=256 * KIB, frame_bytes_max=64 * KIB, pause_allowed=True)
    count, size = 8_000, 1_000
    stalled = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, slow_policy="pause")
    async with stalled, Peers() as quick:
        await stalled.subscribe(1, "jobs", group="workers")
        for _ in range(3):
            member = await Peer.connect(broker.port)
            await member.subscribe(1, "jobs", group="workers")
            quick.append(member)
        got: list[int] = []

        async def work(member: Peer) -> None:
            while (frame := await member.frame())[0] == Type.MESSAGE:
                got.append(number_of(frame[3]))

        working = asyncio.gather(*map(work, quick))
        async with await Peer.connect(broker.port) as publisher:
            await publisher.send(*(publish("jobs", payload) for payload in numbered(range(count), size)))
            await publisher.settle()  # it was never paused for good: three others could go on
        for member in quick:
            await member.send(ping(1))
        await working
        seen = await stats(broker)
        assert not any(value for name, value in seen.items() if name.startswith("dropped_"))
        rest = [number_of(payload) for payload in await stalled.payloads(count - len(got))]
        assert Counter(got + rest) == Counter(range(count))
        assert len(got) > len(rest)


async def test_members_without_credit_are_passed_over(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as broke, await Peer.connect(broker.port) as rich:
        await broke.subscribe(1, "paid", group="g", credit=2)
        await rich.subscribe(1, "paid", group="g")
        async with await Peer.connect(broker.port) as publisher:
            for payload in numbered(range(20)):
                assert await publisher.publish("paid", payload) == 1
        first = [number_of(payload) for payload in await broke.payloads(2)]
        others = [number_of(payload) for payload in await rich.payloads(18)]
        assert sorted(first + others) == list(range(20))


async def test_a_message_for_a_member_that_dies_is_lost_and_counted(start_broker: StartBroker) -> None:
    broker = start_broker(outbox_bytes_max=256 * KIB, frame_bytes_max=64 * KIB)
    count, size = 6_000, 1_000
    async with await Peer.connect(broker.port) as publisher:
        member = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, slow_policy="drop_newest")
        await member.subscribe(1, "jobs", group="workers")
        await publisher.send(*(publish("jobs", payload) for payload in numbered(range(count), size)))
        await publisher.settle()
        member.reset()
        seen = await eventually(broker, lambda now: now["connections"] == 1)
        assert seen["dropped_disconnect"] > 0
        assert seen["messages_out"] + seen["dropped_newest"] + seen["dropped_disconnect"] == count
        assert await publisher.publish("jobs") == 0
