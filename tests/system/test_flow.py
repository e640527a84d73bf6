"""What a subscription bounds: credit, `after`, no_echo, and its end, under a flood."""

import asyncio
from typing import Any

import pytest

from tests.conftest import TestBroker
from tests.system.wire import Peer, Type, frame, number_of, numbered, publish, unsubscribe

FLOOD = 20_000


@pytest.fixture(scope="module")
def broker(module_broker: TestBroker) -> TestBroker:
    return module_broker


def flood(topic: str, count: int = FLOOD) -> bytes:
    return b"".join(publish(topic, payload) for payload in numbered(range(count)))


def numbers(frames: list[list[Any]]) -> list[int]:
    assert all(kind == Type.MESSAGE for kind, *_ in frames)
    return [number_of(each[3]) for each in frames]


async def test_no_more_messages_come_than_there_is_credit_for(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        await reader.subscribe(1, "credit", credit=10, pending_messages=500)
        await publisher.send(flood("credit", 1_000))
        await publisher.settle()
        await reader.send(frame(Type.PING, 1))
        assert numbers((await reader.until(Type.PONG))[:-1]) == list(range(10))

        await reader.send(frame(Type.CREDIT, 1, 100), frame(Type.PING, 2))
        assert numbers((await reader.until(Type.PONG))[:-1]) == list(range(10, 110))

        # 500 waited, the 490 behind them were dropped: newest first, and counted.
        await reader.send(frame(Type.CREDIT, 1, 100_000), unsubscribe(7, 1))
        *frames, answer = await reader.until(Type.OK, 7)
        assert numbers(frames) == list(range(110, 510))
        assert answer[2] == {"delivered": 510, "dropped": 490}


async def test_what_waited_comes_before_what_is_published_later(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        await reader.subscribe(1, "later", credit=0)
        got: list[int] = []
        sending = asyncio.create_task(publisher.send(flood("later", 900)))
        while len(got) < 900:
            await reader.send(frame(Type.CREDIT, 1, 7))
            got += [number_of(payload) for payload in await reader.payloads(min(7, 900 - len(got)))]
        await sending
        assert got == list(range(900))


async def test_after_its_ok_an_ended_subscription_is_silent(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        flooding = asyncio.create_task(publisher.send(flood("silence")))
        for number in range(1, 40):
            await reader.subscribe(number, "silence")
            await reader.send(unsubscribe(1_000 + number, number), frame(Type.PING, number))
            *frames, answer = await reader.until(Type.OK, 1_000 + number)
            got = numbers(frames)
            assert got == sorted(got)
            assert {each[1] for each in frames} <= {number}
            assert answer[2] == {"delivered": len(got), "dropped": 0}
            await reader.expect(Type.PONG, number)
        await flooding


async def test_after_n_messages_a_subscription_ends_by_itself(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        await reader.subscribe(1, "after", after=25)
        await reader.subscribe(2, "after")
        await reader.subscribe(3, "after", credit=5, after=5)
        await publisher.send(flood("after", 50))
        await publisher.settle()
        await reader.send(unsubscribe(9, 2))
        frames = (await reader.until(Type.OK, 9))[:-1]
        for number, count in ((1, 25), (2, 50), (3, 5)):
            assert numbers([each for each in frames if each[:2] == [Type.MESSAGE, number]]) == list(range(count))
        # Each ENDED stands behind the last message of its subscription.
        for number, count in ((1, 25), (3, 5)):
            ended = [Type.ENDED, number, "after", count, 0]
            own = [each for each in frames if each[1] == number]
            assert own[-1] == ended
            assert own.count(ended) == 1
        await reader.subscribe(1, "after")  # its number is free again
        assert await publisher.publish("after") == 1


async def test_unsubscribe_after_n_counts_from_the_start(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as reader, await Peer.connect(broker.port) as publisher:
        await reader.subscribe(1, "drain")
        await publisher.send(flood("drain", 30))
        await publisher.settle()
        await reader.send(unsubscribe(5, 1, after=40))
        assert numbers((await reader.until(Type.OK, 5))[:-1]) == list(range(30))
        await publisher.send(flood("drain", 30))
        assert numbers((await reader.until(Type.ENDED, 1))[:-1]) == list(range(10))
        await reader.subscribe(2, "drain")
        await publisher.publish("drain")
        await reader.send(unsubscribe(6, 2, after=1))
        frames = await reader.until(Type.OK, 6)
        assert [kind for kind, *_ in frames] == [Type.MESSAGE, Type.OK]
        assert await reader.expect(Type.ENDED, 2) == [Type.ENDED, 2, "after", 1, 0]


async def test_no_echo_keeps_a_clients_own_messages_from_it_and_no_others(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as one, await Peer.connect(broker.port) as other:
        await one.subscribe(1, "room", no_echo=True)
        await other.subscribe(1, "room", no_echo=True)
        assert await one.publish("room", b"from one") == 1
        assert (await other.message()).payload == b"from one"
        assert await other.publish("room", b"from other") == 1
        assert (await one.message()).payload == b"from other"
        await one.settle()
        await other.settle()


async def test_a_request_finds_its_reply_and_an_unheard_one_learns_it_at_once(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as asker, await Peer.connect(broker.port) as service:
        inbox = asker.welcome["inbox"]
        await asker.subscribe(1, f"{inbox}.#")
        assert await asker.publish("sum", b"2+2", None, 0, f"{inbox}.1") == 0
        await service.subscribe(1, "sum", group="adders")
        assert await asker.publish("sum", b"2+2", None, 0, f"{inbox}.2") == 1
        question = await service.expect(Type.MESSAGE)
        assert question[6] == f"{inbox}.2"
        await service.subscribe(2, "#")  # an inbox is not for eavesdroppers with a wildcard
        assert await service.publish(question[6], b"4") == 1
        assert (await asker.message()) == (1, f"{inbox}.2", b"4")
        await service.settle()
