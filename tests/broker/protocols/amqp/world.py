"""AMQP connections without sockets: see ../world.py."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from fanlight_broker.core.identity import Identity
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.connection import AmqpConnection
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER, FrameDecoder, FrameType, RawFrame, encode_frame
from fanlight_broker.protocols.amqp.methods import AnyMethod, decode_method, method_frame
from fanlight_broker.protocols.amqp.options import FRAME_MAX, AmqpCounts, AmqpOptions
from fanlight_broker.protocols.amqp.properties import (
    NO_PROPERTIES,
    BasicProperties,
    encode_header,
    encode_properties,
    read_header,
)
from fanlight_broker.protocols.amqp.vhost import Vhosts
from tests.broker.protocols import world
from tests.broker.protocols.world import KIB

__all__ = ["KIB", "Got", "Peer", "World", "content", "published"]

PLAIN = first.ConnectionStartOk(
    {"product": "test", "capabilities": {
        "consumer_cancel_notify": True, "authentication_failure_close": True, "connection.blocked": True,
    }},
    "PLAIN", b"\0guest\0guest",
)  # fmt: skip


class Got(NamedTuple):
    """A method that came, with its content if it has one."""

    channel: int
    method: AnyMethod
    properties: BasicProperties | None = None
    body: bytes = b""


class World(world.World):
    """One broker and its connections. Keywords are limits."""

    def __init__(
        self, *, receive_bytes: int = 64 * KIB, message_bytes_max: int = 1024 * KIB, heartbeat: int = 60, **limits: Any
    ) -> None:
        super().__init__(receive_bytes=receive_bytes, in_turns=True, **limits)
        self.options, self.counts, self.vhosts = AmqpOptions(message_bytes_max, heartbeat), AmqpCounts(), Vhosts()

    def open(self) -> "Peer":
        """A connection that has sent nothing yet."""
        return Peer(self)

    def connect(self, **options: Any) -> "Peer":
        """A connection that is through its handshake."""
        peer = self.open()
        peer.shake_hands(**options)
        return peer

    def channel(self, **options: Any) -> "Peer":
        """A connection with channel 1 open."""
        peer = self.connect(**options)
        peer.ask(first.ChannelOpen())
        return peer


class Peer(world.Peer):
    """The client's end of a connection. What is said on no channel is said on channel 1."""

    protocol: AmqpConnection
    world: World

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.verified = False
        self.frame_max = FRAME_MAX
        self.protocol = AmqpConnection(
            world.options, world.counts, world.vhosts, world.broker, self, world.shared, world.now
        )

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        if not (self.verified and self.log_in):
            return super().authenticate(user, password, client)
        self.credentials.append((user, password))
        self.world.soon.append(
            lambda: self.protocol.authenticated(Identity(user or "", verified=True), self.world.now)
        )
        return None

    def shake_hands(
        self, start_ok: first.ConnectionStartOk = PLAIN, *, channel_max: int = 2_047, frame_max: int = FRAME_MAX,
        heartbeat: int = 0, vhost: str = "/",
    ) -> None:
        self.send(PROTOCOL_HEADER)
        self.method(first.ConnectionStart)
        self.say(start_ok, 0)
        self.method(first.ConnectionTune)
        self.say(first.ConnectionTuneOk(channel_max, frame_max, heartbeat), 0)
        self.frame_max = frame_max
        self.say(first.ConnectionOpen(vhost), 0)
        self.method(first.ConnectionOpenOk)

    def say(self, method: AnyMethod, channel: int = 1) -> None:
        self.send(method_frame(channel, method))

    def ask(self, method: AnyMethod, channel: int = 1) -> AnyMethod:
        """The method that answers, which is all that comes."""
        self.say(method, channel)
        return self.method()

    def publish(
        self, key: str, body: bytes = b"", exchange: str = "", channel: int = 1, *, mandatory: bool = False,
        **properties: Any,
    ) -> None:
        self.send(published(
            key, body, exchange, channel, mandatory=mandatory, frame_max=self.frame_max, **properties
        ))

    def frames(self) -> list[RawFrame]:
        """What came since the last call; half a frame is an error."""
        decoder = FrameDecoder(self.frame_max)
        found = list(decoder.feed(self.received))
        assert decoder.waiting == 0, "half a frame"
        self.received = b""
        return found

    def got(self) -> list[Got]:
        """What came since the last call, heartbeats left out."""
        return list(joined(self.frames()))

    def method(self, kind: type[AnyMethod] | None = None) -> AnyMethod:
        """The one method that came since the last call."""
        (only,) = self.got()
        assert kind is None or isinstance(only.method, kind), only.method
        return only.method

    def declare(self, queue: str = "q", **options: Any) -> str:
        ok = self.ask(entity.QueueDeclare(queue=queue, **options))
        assert isinstance(ok, entity.QueueDeclareOk), ok
        return str(ok.queue)

    def counts(self, queue: str = "q") -> tuple[int, int]:
        """Messages and consumers of a queue."""
        ok = self.ask(entity.QueueDeclare(queue=queue, passive=True))
        return ok.message_count, ok.consumer_count

    def consume(self, queue: str = "q", tag: str = "c", **options: Any) -> list[Got]:
        """What comes behind consume-ok."""
        self.say(basic.BasicConsume(queue=queue, consumer_tag=tag, **options))
        ok, *rest = self.got()
        assert ok.method == basic.BasicConsumeOk(tag)
        return rest

    def error(self) -> tuple[bool, int, tuple[int, int]]:
        """The one thing that came: does it close the connection, its code, class and method."""
        (only,) = self.got()
        assert isinstance(only.method, first.ConnectionClose | first.ChannelClose), only
        closes_all = isinstance(only.method, first.ConnectionClose)
        assert closes_all == (self.close_reason is not None)
        return closes_all, only.method.reply_code, (only.method.class_id, only.method.method_id)


def joined(frames: list[RawFrame]) -> Iterator[Got]:
    """Methods with their contents."""
    rest = iter(frames)
    for kind, channel, payload in rest:
        if kind is FrameType.HEARTBEAT:
            continue
        assert kind is FrameType.METHOD, kind
        method = decode_method(payload)
        if not isinstance(method, basic.BasicDeliver | basic.BasicGetOk | basic.BasicReturn):
            yield Got(channel, method)
            continue
        kind, number, payload = next(rest)
        assert (kind, number) == (FrameType.HEADER, channel)
        header, body = read_header(payload), b""
        while len(body) < header.body_size:
            kind, number, payload = next(rest)
            assert (kind, number) == (FrameType.BODY, channel)
            assert payload
            body += payload
        assert len(body) == header.body_size
        yield Got(channel, method, header.properties, body)


def content(
    channel: int, body: bytes, properties: BasicProperties = NO_PROPERTIES, frame_max: int = FRAME_MAX
) -> bytes:
    """Header and body frames."""
    most = frame_max - 8
    octets = encode_frame(FrameType.HEADER, channel, encode_header(len(body), encode_properties(properties)))
    for at in range(0, len(body), most):
        octets += encode_frame(FrameType.BODY, channel, body[at : at + most])
    return octets


def published(
    key: str, body: bytes = b"", exchange: str = "", channel: int = 1, *, mandatory: bool = False,
    immediate: bool = False, frame_max: int = FRAME_MAX, **properties: Any,
) -> bytes:
    """basic.publish with its content."""
    method = basic.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate)
    return method_frame(channel, method) + content(channel, body, BasicProperties(**properties), frame_max)


def code_of(octets: bytes) -> int:
    """Of bytes that FrameDecoder refuses."""
    try:
        list(FrameDecoder(FRAME_MAX).feed(octets))
    except AmqpError as error:
        return error.code
    raise AssertionError("they are in order")
