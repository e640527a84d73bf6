"""`client.queues` (docs/native-protocol.md, 3.10): what it asks in bytes, and what it makes of the answers."""

from collections.abc import Awaitable, Callable

import pytest

import fanlight
from fanlight.queues import Queues

from .frame_bytes import FALSE, NIL, TRUE, array, fixint, frame, num, octets, options, text
from .peer import Peer, connect, conversing, error, listening

Asked = tuple[bytes, bytes]  # QUEUE and its answer


def asked(verb: str, **arguments: bytes) -> bytes:
    return frame(fixint(39), num(1), text(verb), *([options(**arguments)] if arguments else []))


def done(**result: bytes) -> bytes:
    return frame(fixint(7), num(1), options(**result))


async def answer(call: Callable[[Queues], Awaitable[object]], request: bytes, reply: bytes) -> object:
    """What the call returns to the program when it asks `request` and gets `reply`."""

    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.greet(features=("queues", "where"))
        await connection.expect(request)
        await connection.say(reply)

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=False) as client:
        return await call(client.queues)


async def test_each_call_has_the_bytes_of_the_specification() -> None:
    limited = fanlight.QueueOptions(messages_max=5, dead_letter="d/x", dead_letter_syntax="mqtt")
    filters = array(array(text("a.#"), num(0)), array(text("b/+"), num(1)))
    wanted = options(messages_max=num(5), dead_letter=text("d/x"), dead_letter_syntax=num(1))
    assert await answer(
        lambda queues: queues.add("q", "a.#", ("b/+", "mqtt"), options=limited),
        asked("add", name=text("q"), filters=filters, queue=wanted), done(name=text("q"), created=TRUE),
    ) is True  # fmt: skip
    assert await answer(
        lambda queues: queues.add("q", "b", syntax="mqtt"),
        asked("add", name=text("q"), filters=array(array(text("b"), num(1)))), done(name=text("q"), created=FALSE),
    ) is False  # fmt: skip
    assert await answer(
        lambda queues: queues.add("q", "b", where="x = 1"),
        asked("add", name=text("q"), filters=array(array(text("b"), num(0))), where=text("x = 1")), done(created=TRUE),
    ) is True  # fmt: skip
    assert await answer(
        lambda queues: queues.purge("q"), asked("purge", name=text("q")), done(messages=num(70_000))
    ) == 70_000  # fmt: skip
    assert await answer(
        lambda queues: queues.remove("q", force=True), asked("remove", name=text("q"), force=TRUE),
        done(messages=num(0)),
    ) == 0  # fmt: skip
    assert await answer(
        lambda queues: queues.move("q", "p", count=3), asked("move", name=text("q"), to=text("p"), count=num(3)),
        done(messages=num(2), stopped=text("full")),
    ) == (2, "full")  # fmt: skip
    assert await answer(
        lambda queues: queues.move("q"), asked("move", name=text("q")), done(messages=num(3), stopped=NIL)
    ) == fanlight.Moved(3, None)  # fmt: skip


async def test_octets_that_are_not_text_come_out_as_they_are() -> None:
    (message,) = await answer(  # type: ignore[misc]
        lambda queues: queues.peek("q", 1),
        asked("peek", name=text("q"), count=num(1), payload_bytes=num(1024)),
        done(messages=array(options(topic=octets(b"raw.\xff"), payload=octets(b"x"), attempt=num(2), size=num(9),
                                    cut=TRUE, later=text("ignored"))), waiting=num(1)),
    )  # fmt: skip
    assert isinstance(message, fanlight.WaitingMessage)
    assert (message.topic_bytes, message.payload, message.attempt, message.size, message.cut) == (
        b"raw.\xff", b"x", 2, 9, True
    )  # fmt: skip
    assert (message.headers, message.reply, message.syntax) == ({}, None, "amqp")


async def test_what_waits_for_a_session_or_a_shared_subscription_is_asked_for_by_its_name() -> None:
    waiting = options(
        topic=text("a/b"), syntax=num(1), payload=octets(b"x"), attempt=num(0), seconds=NIL, size=num(1), cut=FALSE
    )  # fmt: skip
    bounds = {"count": num(2), "payload_bytes": num(5)}
    (message,) = await answer(  # type: ignore[misc]
        lambda queues: queues.peek_session("sensor", 2, payload_bytes=5),
        asked("peek", session=text("sensor"), **bounds), done(messages=array(waiting), waiting=num(1)),
    )  # fmt: skip
    assert (message.topic, message.payload, message.attempt, message.seconds) == ("a/b", b"x", 0, 0.0)
    for filter, syntax in (("a/#", 1), (("a.#", "amqp"), 0)):
        wanted = array(text(filter if isinstance(filter, str) else filter[0]), num(syntax))
        assert await answer(
            lambda queues, filter=filter: queues.peek_group("g", filter, 2, payload_bytes=5),  # type: ignore[misc]
            asked("peek", group=text("g"), filter=wanted, **bounds), done(messages=array(), waiting=num(0)),
        ) == ()  # fmt: skip


async def test_a_refusal_is_an_exception_of_its_own() -> None:
    with pytest.raises(fanlight.QueueNotEmpty):
        await answer(lambda queues: queues.remove("q"), asked("remove", name=text("q")), error(1, "queue_not_empty"))
    with pytest.raises(fanlight.NoSuchQueue):
        await answer(lambda queues: queues.info("q"), asked("info", name=text("q")), error(1, "no_such_consumer"))


@pytest.mark.parametrize("result", [done(), done(messages=text("many")), done(messages=NIL)])
async def test_an_answer_without_what_it_must_have_is_a_protocol_error(result: bytes) -> None:
    with pytest.raises(fanlight.ProtocolError):
        await answer(lambda queues: queues.purge("q"), asked("purge", name=text("q")), result)


async def test_a_broker_without_queues_is_not_asked() -> None:
    async def script(peer: Peer) -> None:
        await peer.greeted()

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=False) as client:
        with pytest.raises(fanlight.Unsupported):
            await client.queues.list()


async def test_what_no_broker_would_take_is_refused_here() -> None:
    async def script(peer: Peer) -> None:
        await peer.greeted()

    async with listening() as peer, conversing(peer, script), connect(peer.url, reconnect=False) as client:
        for name in ("", "q" * 256):
            with pytest.raises(ValueError, match="1 to 255 bytes"):
                await client.queues.purge(name)
        with pytest.raises(ValueError, match="needs a filter"):
            await client.queues.add("q")
        with pytest.raises(ValueError, match="syntax"):
            await client.queues.add("q", ("a", "stomp"))  # type: ignore[arg-type]
