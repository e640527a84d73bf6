"""The asyncio client against a scripted peer: what it says, what it makes of what it is told."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import fanlight

from .frame_bytes import fixint, frame, num, octets, options, text, uint32
from .peer import (
    Peer,
    connect,
    conversing,
    error,
    goodbye,
    listening,
    message,
    ok,
    pong,
    receipt,
)

NIL = b"\xc0"
GOODBYE = frame(fixint(14), text("normal"))


def subscribe(request: int, subscription: int, filter: str, **wanted: bytes) -> bytes:
    return frame(fixint(6), num(request), num(subscription), text(filter), *([options(**wanted)] if wanted else []))


async def test_hello_carries_name_credentials_and_policy() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        hello = await connection.greet()
        for said in (b"\xa6client\xa2me", b"\xa4user\xa4a@na", b"\xa8password\xa2p:"):
            assert said in hello
        assert b"\xabslow_policy\xabdrop_oldest" in hello
        await connection.expect(GOODBYE)

    async with listening() as peer, conversing(peer, script):
        url = peer.url.replace("://", "://a%40na:p%3A@")
        async with connect(url, name="me", slow_policy="drop_oldest") as client:
            assert client.connected
            assert client.info["server"] == "peer"


async def test_wrong_credentials_are_an_authentication_failure_at_once() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.frame()
        await connection.say(error(None, "authentication_failed", "no such user"), goodbye("authentication_failed"))

    async with listening() as peer, conversing(peer, script):
        with pytest.raises(fanlight.AuthenticationFailed, match="no such user"):
            await connect(peer.url, retry_first_connect=True)


async def test_a_connection_to_nobody_fails_fast_and_says_what_to_try() -> None:
    async with listening() as peer:
        url = peer.url
    with pytest.raises(fanlight.ConnectError, match="fanlightd serve") as raised:
        await connect(url)
    assert raised.value.details["host"] == "127.0.0.1"
    assert str(raised.value.details["port"]) in str(raised.value)


async def test_something_that_is_no_broker_is_called_so() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.frame()
        await connection.say(b"220 mail.example ESMTP\r\n")

    async with listening() as peer, conversing(peer, script):
        with pytest.raises(fanlight.ConnectionLost, match=f"what answers at {peer.url} is not a Fanlight broker"):
            await connect(peer.url)


@pytest.mark.parametrize(
    ("answer", "server"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server"), (b"\x20\x02\x00\x01", "an MQTT server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "a server that speaks TLS"), (b"AMQP\x00\x00\x09\x01", "an AMQP server"),
        (b"INFO {}\r\n", "a NATS server"), (b"-ERR unknown command\r\n", "a Redis server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server"),
    ],
)  # fmt: skip
async def test_a_server_of_another_protocol_is_named_with_the_ports_of_ours(answer: bytes, server: str) -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.frame()
        await connection.say(answer)

    async with listening() as peer, conversing(peer, script):
        text = f"{peer.url} is {server}, .* on port 7420, by TLS on port 7423"
        with pytest.raises(fanlight.ConnectionLost, match=text):
            await connect(peer.url)


async def test_a_peer_that_closes_before_its_welcome_is_named() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.frame()
        connection.writer.close()

    async with listening() as peer, conversing(peer, script):
        with pytest.raises(fanlight.ConnectionLost, match=f"the connection to {peer.url} was closed during the hand"):
            await connect(peer.url)


async def test_a_peer_that_never_welcomes_is_given_up_in_time() -> None:
    async with listening() as peer:
        with pytest.raises(fanlight.ConnectError, match=r"no answer .* within 0.05 s"):
            await connect(peer.url, connect_timeout=0.05)


@pytest.mark.parametrize(
    "info", [options(), options(limits=NIL, idle_seconds=text("never"), inbox=NIL)], ids=["nothing", "odd"]
)
async def test_a_welcome_that_says_little_is_enough(info: bytes) -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.frame()
        await connection.say(frame(fixint(2), fixint(1), info))
        await connection.expect(frame(fixint(3), fixint(1), text("t"), octets(b"")))
        await connection.say(receipt(1, 2))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        assert await client.publish("t", receipt=True) == 2
        with pytest.raises(fanlight.ProtocolError, match="inbox"):
            await client.request("t")


async def test_a_hook_that_fails_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.say(error(None, "not_permitted"), error(None, "unsupported"))
        await connection.expect(frame(fixint(11), fixint(1)))
        await connection.say(pong(1))

    async def on_error(refused: fanlight.FanlightError) -> None:
        raise RuntimeError(f"in the hook: {refused.code}")

    async with listening() as peer, conversing(peer, script), connect(peer.url, on_error=on_error) as client:
        await client.flush()
        assert client.stats.errors == 2
    assert "in the hook: unsupported" in caplog.text


async def test_publishes_of_one_turn_go_out_in_order() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        for number in range(100):
            await connection.expect(frame(fixint(3), NIL, text("t"), octets(b"%d" % number)))
        await connection.expect(frame(fixint(11), fixint(1)))
        await connection.say(pong(1))
        await connection.expect(GOODBYE)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        for number in range(100):
            await client.publish("t", b"%d" % number)
        assert client.unsent[0] == 100
        assert client.stats.published == 100


async def test_an_error_answers_the_publish_that_it_names() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(frame(fixint(3), fixint(1), text("$SYS.x"), octets(b"")))
        await connection.expect(frame(fixint(3), fixint(2), text("t"), octets(b"")))
        await connection.say(error(1, "not_permitted"), receipt(2, 5))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        refused, routed = await asyncio.gather(
            client.publish("$SYS.x", receipt=True), client.publish("t", receipt=True), return_exceptions=True
        )
        assert isinstance(refused, fanlight.NotPermitted)
        assert (refused.code, refused.request) == ("not_permitted", 1)
        assert routed == 5


async def test_an_error_without_a_request_goes_to_the_hook_and_is_counted() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.frame()
        await connection.say(error(None, "not_permitted", "not there"))

    said: asyncio.Queue[fanlight.FanlightError] = asyncio.Queue()
    async with listening() as peer, conversing(peer, script), connect(peer.url, on_error=said.put_nowait) as client:
        await client.publish("$SYS.x")
        refused = await asyncio.wait_for(said.get(), 60)
        assert isinstance(refused, fanlight.NotPermitted)
        assert client.stats.errors == 1


async def test_an_unknown_frame_and_unknown_fields_are_passed_over() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(subscribe(1, 1, "#"))
        await connection.say(
            frame(fixint(99), text("later")),
            frame(fixint(7), fixint(1), NIL, text("later")),
            frame(fixint(4), uint32(1), text("a"), octets(b""), NIL, NIL, NIL, num(77)),
        )

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        everything = await client.subscribe("#")
        assert (await everything.next(5)).topic == "a"


async def test_a_ping_is_answered_with_its_token() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.say(frame(fixint(11), num(12345)), frame(fixint(11)))
        await connection.expect(frame(fixint(12), num(12345)))
        await connection.expect(frame(fixint(12)))
        answered.set()

    answered = asyncio.Event()
    async with listening() as peer, conversing(peer, script), connect(peer.url):
        await answered.wait()


async def test_an_answer_that_does_not_come_is_a_timeout_and_the_connection_goes_on() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(frame(fixint(3), fixint(1), text("t"), octets(b"")))
        await connection.expect(frame(fixint(3), fixint(2), text("t"), octets(b"")))
        await connection.say(receipt(1, 9), receipt(2, 3))  # the first comes too late

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(fanlight.RequestTimeout):
            await client.publish("t", receipt=True, timeout=0.01)
        assert await client.publish("t", receipt=True) == 3


async def test_a_request_names_an_inbox_topic_and_gets_the_reply() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(subscribe(1, 1, "$inbox.0a.#"))
        await connection.say(ok(1))
        await connection.expect(
            frame(fixint(3), fixint(2), text("ask"), octets(b"?"), NIL, fixint(0), text("$inbox.0a.1"))
        )
        await connection.say(receipt(2, 1), message(1, "$inbox.0a.1", b"!"))
        # The second request needs no second subscription; in MQTT spelling its reply topic has slashes.
        await connection.expect(
            frame(fixint(3), fixint(3), text("a/b"), octets(b"?"), NIL, fixint(1), text("$inbox/0a/2"))
        )
        await connection.say(
            receipt(3, 1),
            frame(fixint(4), uint32(1), text("$inbox/0a/2"), octets(b"!!"), NIL, fixint(1)),
            message(1, "$inbox.0a.1", b"late"),
        )

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        reply = await client.request("ask", b"?")
        assert (reply.payload, reply.subscription) == (b"!", None)
        assert (await client.request("a/b", b"?", syntax="mqtt")).payload == b"!!"
        with pytest.raises(fanlight.RequestTimeout):
            await client.flush(timeout=0.05)
        assert client.stats.unclaimed == 1


async def test_a_request_that_reaches_nobody_says_so_without_waiting() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.frame()
        await connection.say(ok(1))
        await connection.frame()
        await connection.say(receipt(2, 0))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(fanlight.NoResponders, match="'ask'"):
            await client.request("ask", timeout=60)


async def test_a_message_is_answered_in_its_own_spelling() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.frame()
        await connection.say(
            ok(1),
            frame(fixint(4), uint32(1), text("up/x"), octets(b"a"), NIL, fixint(1), text("$inbox/ff/1")),
            message(1, "up.x", b"a"),
        )
        await connection.expect(frame(fixint(3), NIL, text("$inbox/ff/1"), octets(b"A"), NIL, fixint(1), NIL))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        asked = await client.subscribe("up.*")
        question = await asked.next(5)
        await question.respond(question.payload.upper())
        with pytest.raises(fanlight.FanlightError, match="asks for no reply"):
            await (await asked.next(5)).respond(b"")


async def test_an_answer_has_the_correlation_of_its_request_unless_it_brings_another() -> None:
    asks = options(**{"correlation-id": text("7")})

    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.frame()
        await connection.say(ok(1), frame(fixint(4), uint32(1), text("t"), octets(b""), asks, NIL, text("r")))
        await connection.expect(frame(fixint(3), NIL, text("r"), octets(b"a"), asks))
        own = options(**{"correlation-id": text("8")})
        await connection.expect(frame(fixint(3), NIL, text("r"), octets(b"b"), own))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        question = await (await client.subscribe("t")).next(5)
        await question.respond(b"a")
        await question.respond(b"b", headers={"correlation-id": "8"})


async def test_values_go_through_the_serializer_and_bytes_pass_it_by() -> None:
    header = options(**{"content-type": text("application/json")})

    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(subscribe(1, 1, "t"))
        await connection.say(ok(1))
        await connection.expect(frame(fixint(3), NIL, text("t"), octets(b'{"a":1}'), header))
        await connection.expect(frame(fixint(3), NIL, text("t"), octets(b"raw")))
        await connection.say(
            frame(fixint(4), uint32(1), text("t"), octets(b'{"a":1}'), header),
            frame(fixint(4), uint32(1), text("t"), octets(b"\x81\xa1a\x01"),
                  options(**{"content-type": text("application/msgpack")})),
            message(1, "t", b"raw"),
            frame(fixint(4), uint32(1), text("t"), octets(b"{"), header),
        )  # fmt: skip

    async with listening() as peer, conversing(peer, script), connect(peer.url, serializer=fanlight.JSON) as client:
        got = await client.subscribe("t")
        await client.publish("t", {"a": 1})
        await client.publish("t", b"raw")
        assert [(await got.next(5)).value for _ in range(3)] == [{"a": 1}, {"a": 1}, b"raw"]
        broken = await got.next(5)
        with pytest.raises(fanlight.SerializationError):
            _ = broken.value


async def test_what_would_cost_the_connection_is_refused_here() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.connection()
        await connection.greet(frame_bytes=1000)
        await connection.expect(GOODBYE)

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(fanlight.FrameTooLarge) as raised:
            await client.publish("t", bytes(1000))
        assert raised.value.details["limit"] == 1000
        with pytest.raises(fanlight.FrameTooLarge):
            await client.publish("t", bytes(1000), receipt=True)
        with pytest.raises(TypeError, match=r"fanlight\.JSON"):
            await client.publish("t", "text")
        with pytest.raises(ValueError, match=r"\$seq"):
            await client.publish("t", headers={"$seq": 1})
        with pytest.raises(TypeError):
            await client.publish("t", headers={"k": {"nested": 1}})  # type: ignore[dict-item]
        with pytest.raises(fanlight.InvalidTopic):
            await client.publish("\ud800")
        with pytest.raises(TypeError):
            await client.publish(5)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="syntax"):
            await client.publish("t", syntax="stomp")  # type: ignore[call-overload]
        assert client.stats.published == 0


async def test_a_topic_that_is_not_text_goes_as_bytes_and_comes_as_text_that_stands_for_them() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(frame(fixint(6), fixint(1), fixint(1), octets(b"raw.\xff.*")))
        await connection.say(ok(1))
        await connection.expect(frame(fixint(3), NIL, octets(b"raw.\xff.1"), octets(b"")))
        await connection.expect(frame(fixint(3), NIL, text("fine"), octets(b"")))
        await connection.say(frame(fixint(4), uint32(1), octets(b"raw.\xff.1"), octets(b"")))
        await connection.expect(frame(fixint(3), NIL, octets(b"raw.\xff.1"), octets(b"again")))

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        raw = await client.subscribe(b"raw.\xff.*")
        await client.publish(b"raw.\xff.1")
        await client.publish(b"fine")
        message = await raw.next(5)
        assert (message.topic, message.topic_bytes) == ("raw.\udcff.1", b"raw.\xff.1")
        assert message.words == ("raw", "\udcff", "1")
        assert raw.filter == "raw.\udcff.*"
        await client.publish(message.topic, b"again")  # where it came from, though it is no UTF-8
        with pytest.raises(fanlight.InvalidTopic, match="not text"):
            await client.publish("raw.\ud800", b"")


async def test_publish_many_takes_pairs_and_says_which_item_is_none() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(frame(fixint(3), NIL, text("t"), octets(b"")))

    async def rows() -> AsyncIterator[Any]:
        yield "t", b""
        yield "ab"  # two characters are no topic and payload

    async with listening() as peer, conversing(peer, script), connect(peer.url) as client:
        with pytest.raises(TypeError, match=r"pairs \(topic, payload\); item 1 is 'ab'"):
            await client.publish_many(rows())
        with pytest.raises(TypeError, match=r"item 0 is b'x'"):
            await client.publish_many([b"x"])  # type: ignore[list-item]
        assert client.stats.published == 1


async def test_publish_waits_when_the_peer_does_not_read() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await full.wait()
        while not enough.is_set():
            await connection.frame()
        connection.hang_up()

    full, enough = asyncio.Event(), asyncio.Event()
    async with (
        listening() as peer,
        conversing(peer, script),
        connect(peer.url, pending_bytes=100_000, reconnect=False) as client,
    ):
        publishing = asyncio.create_task(publish_without_end(client))
        while client.unsent[1] < 100_000:
            await asyncio.sleep(0)
        for _ in range(1000):  # turns of the loop in which it might go on publishing, and must not
            await asyncio.sleep(0)
            assert client.unsent[1] <= 100_000 + 10_100
        stood_at = client.stats.published
        full.set()
        while client.stats.published < stood_at + 100:
            await asyncio.sleep(0)
        enough.set()
        with pytest.raises(fanlight.ConnectionLost):  # and whoever waits for room learns that there will be none
            await publishing
        assert client.stats.unsent_lost > 0


async def publish_without_end(client: fanlight.Client) -> None:
    payload = bytes(10_000)
    while True:
        await client.publish("t", payload)


async def test_a_closed_client_says_so() -> None:
    async def script(peer: Peer) -> None:
        connection = await peer.greeted()
        await connection.expect(GOODBYE)
        await connection.at_end()

    async with listening() as peer, conversing(peer, script):
        client = await connect(peer.url)
        await client.close()
        await client.close()
        assert client.closed
        for call in (client.publish("t"), client.publish("t", receipt=True), client.flush(), client.request("t")):
            with pytest.raises(fanlight.ConnectionClosed):
                await call
        with pytest.raises(fanlight.ConnectionClosed):
            await client.subscribe("t")
    assert asyncio.all_tasks() == {asyncio.current_task()}
