"""The compiled lane: what it does without Python is what the path through Python does, byte for byte."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter
from fanlight_broker.protocols.amqp.data_types import UINT32, long_string
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import DEPTH_MAX, encode_table
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT, AmqpDeliveryFormat
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.plain_content import is_plain
from fanlight_broker.protocols.amqp.properties import (
    PERSISTENT,
    BasicProperties,
    encode_header,
    encode_properties,
    read_header,
)
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.publication import frame_of
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.amqp_values import basic_properties, tables, texts
from tests.broker.protocols.amqp.test_permission_table import known
from tests.broker.protocols.amqp.world import Got, Peer, World, published

KEYS = ("q", "r", "a.b", "a.c", "b.c", "nowhere", "é", "*", "")
EXCHANGES = ("", "direct", "topic", "fanout", "headers", "amq.topic", "other", "more", "late", "missing")
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"x-message-ttl": 0},
    {"x-message-ttl": 1_000},
    {"x-max-length": 0},
    {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
    {"x-max-length-bytes": 30, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "fanout"},
    {"x-max-priority": 5},
    {"x-queue-type": "quorum", "x-delivery-limit": 2},
    {"x-single-active-consumer": True},
)
SMALL_FRAMES = 4_096
FOREVER = 1e18  # seconds


class Side:
    """A publisher, and consumers of two queues: q acknowledges by being sent, r does so never.

    `other` and `more`, a headers exchange, have an alternate exchange, `late` holds messages back; nobody reads the
    queue `dead`. `topic`, `more` and `amq.topic` lead some messages on to other exchanges.
    """

    def __init__(
        self, *, compiled: bool, confirming: bool, arguments: dict[str, Any] = ARGUMENTS[0]
    ) -> None:
        self.world = World()
        self.reader, self.writer = self.world.channel(), self.world.channel(frame_max=SMALL_FRAMES)
        for name in ("direct", "topic", "fanout", "headers"):
            self.writer.ask(entity.ExchangeDeclare(exchange=name, type=name))
        self.writer.ask(entity.ExchangeDeclare(
            exchange="other", type="direct", arguments={"alternate-exchange": "fanout"}
        ))
        self.writer.ask(entity.ExchangeDeclare(
            exchange="more", type="headers", arguments={"alternate-exchange": "fanout"}
        ))
        self.writer.ask(entity.ExchangeDeclare(
            exchange="late", type="x-delayed-message", arguments={"x-delayed-type": "direct"}
        ))
        self.reader.declare("dead")
        for queue in ("q", "r"):
            self.reader.declare(queue, durable=True, arguments=arguments)
            for exchange, key in (
                ("direct", "a.b"), ("topic", "a.#"), ("fanout", ""), ("amq.topic", "a.*"), ("other", "q"),
                ("late", "a.b"),
            ):
                self.reader.ask(entity.QueueBind(queue=queue, exchange=exchange, routing_key=key))
        self.reader.ask(entity.QueueBind(queue="q", exchange="headers", arguments={"x-match": "any", "n": 1}))
        for queue, asked in (("q", {"n": 1, "a": None}), ("r", {"t": {"x": 1}, "n": 2.0}), ("r", {"x-match": "any"})):
            self.reader.ask(entity.QueueBind(queue=queue, exchange="more", arguments=asked))
        self.reader.ask(entity.ExchangeBind(destination="direct", source="more", arguments={"n": 3}))
        self.reader.ask(entity.ExchangeBind(destination="fanout", source="topic", routing_key="b.#"))
        self.reader.ask(entity.ExchangeBind(destination="fanout", source="amq.topic", routing_key="*.c"))
        self.reader.consume("q", "automatic", no_ack=True)
        self.reader.consume("r", "manual")
        if confirming:
            self.writer.ask(entity.ConfirmSelect())
        if not compiled:
            self.writer.protocol.lane.sites = self.reader.protocol.lane.sites = None
            for name in ("q", "r"):
                work = self.world.broker.queues.get(name)
                assert work is not None
                work.inside.queue.ttl = min(work.inside.queue.ttl, FOREVER)  # all messages go through the queue

    def counts(self, queue: str) -> int:
        """Messages that came to a queue."""
        found = self.world.broker.queues.get(queue)
        assert found is not None
        return int(found.inside.published)

    def outcome(self) -> dict[str, Any]:
        ledger = self.world.broker.ledger
        queues = [self.world.broker.queues.get(name) for name in ("q", "r", "dead")]
        self.world.turn()
        self.world.pass_time(2)
        return {
            "read": self.reader.received,
            "answers": list(confirmed(self.writer)),
            "counts": self.world.counts.counters(),
            "ledger": [
                getattr(ledger, name) for name in (
                    "messages_in", "payload_in", "payload_out", "unroutable", "recipients", "stored", "expired",
                    "dropped_queue", "turned_away",
                )
            ],
            "queues": [
                (
                    each.inside.published, each.inside.deliveries, each.inside.acknowledgements, each.inside.discards,
                    len(each.inside),
                )
                for each in queues if each is not None
            ],
        }  # fmt: skip


def confirmed(peer: Peer) -> Iterator[object]:
    """What the publisher got, with an ack of several as one for each."""
    last = 0
    for got in peer.got():
        if isinstance(got.method, basic.BasicAck):
            tag = got.method.delivery_tag
            yield from range(last + 1 if got.method.multiple else tag, tag + 1)
            last = tag
        else:
            if isinstance(got.method, basic.BasicNack):
                last = got.method.delivery_tag  # an ack of several that follows is of those behind it
            yield got


publishes = st.builds(
    published, st.sampled_from(KEYS), st.binary(max_size=40) | st.sampled_from([b"x" * 4_088, b"y" * 5_000]),
    st.sampled_from(EXCHANGES[:-1]), mandatory=st.booleans(), frame_max=st.just(SMALL_FRAMES),
    headers=st.sampled_from([
        None, {"n": 1}, {"CC": ["r"]}, {"BCC": ["q"]}, {"t": {"x": 1}, "a": [None, {}], "n": 2}, {"x-delay": 1_000},
        {"n": 1.0, "a": "x"}, {"n": 3}, {"n": True},
    ]),
    delivery_mode=st.sampled_from([None, 1, PERSISTENT]), priority=st.sampled_from([None, 5]),
    reply_to=st.sampled_from([None, None, "there", "amq.rabbitmq.reply-to"]),
    expiration=st.sampled_from([None, None, "60000", "0", "1.5"]),
    user_id=st.sampled_from([None, None, None, "guest", "him"]),
)  # fmt: skip
changes = st.sampled_from([
    method_frame(1, entity.QueueUnbind(queue="q", exchange="topic", routing_key="a.#")),
    method_frame(1, entity.QueueBind(queue="q", exchange="direct", routing_key="q", no_wait=True)),
    method_frame(1, entity.QueueBind(queue="r", exchange="topic", routing_key="#", no_wait=True)),
    method_frame(1, entity.QueueBind(queue="r", exchange="headers", arguments={"n": None}, no_wait=True)),
    method_frame(1, entity.QueueUnbind(queue="q", exchange="headers", arguments={"x-match": "any", "n": 1})),
    method_frame(1, entity.ExchangeUnbind(destination="direct", source="more", arguments={"n": 3})),
    method_frame(1, entity.ExchangeUnbind(destination="fanout", source="amq.topic", routing_key="*.c")),
    method_frame(1, entity.QueueUnbind(queue="q", exchange="amq.topic", routing_key="a.*")),
    method_frame(1, entity.QueueDelete(queue="q", no_wait=True)),
    method_frame(1, entity.QueueDeclare(queue="q", no_wait=True)),
    method_frame(1, entity.QueueDeclare(queue="nowhere", no_wait=True)),
    method_frame(1, entity.ExchangeDelete(exchange="fanout", no_wait=True)),
    method_frame(1, entity.TxSelect()),
    method_frame(1, entity.TxCommit()),
    method_frame(1, entity.TxRollback()),
])  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    sent=st.lists(publishes | publishes | publishes | changes, max_size=12), confirming=st.booleans(),
    cut=st.sampled_from([1, 7, 100, 1 << 20]), tail=st.integers(0, 30),
    arguments=st.just(ARGUMENTS[0]) | st.sampled_from(ARGUMENTS),
)  # fmt: skip
def test_the_lane_does_what_python_does(
    sent: list[bytes], confirming: bool, cut: int, tail: int, arguments: dict[str, Any]
) -> None:
    octets = b"".join(sent) + published("q", b"the last")[:tail]
    outcomes = []
    for compiled in (True, False):
        side = Side(compiled=compiled, confirming=confirming, arguments=arguments)
        side.writer.send(*(octets[at : at + cut] for at in range(0, len(octets), cut)))
        outcomes.append(side.outcome())
    assert outcomes[0] == outcomes[1]


def ruled(sent: list[tuple[str, str]], *, compiled: bool) -> list[object]:
    """What a restricted publisher gets for messages to (exchange, key), and what a queue has then; later all is denied.
    """
    world = World()
    others = (allow("connect"), allow("queue subscribe", "$queue/#"), allow("queue subscribe", "#"))
    peer = known(
        world, "alice", *others, allow("publish", "a/b"), allow("publish", "$exchange/amq%2Edirect/#"),
        allow("publish", "$exchange/amq%2Eheaders/a/b"),
    )
    peer.declare("q")
    for exchange in ("amq.topic", "amq.direct", "amq.fanout", "amq.headers"):
        peer.ask(entity.QueueBind(queue="q", exchange=exchange, routing_key="a.b"))
    peer.ask(entity.ConfirmSelect())
    if not compiled:
        peer.protocol.lane.sites = None
    found: list[object] = []
    for exchange, key in sent:
        peer.publish(key, b"x", exchange)
        found += peer.got()
    world.broker.use_permissions(Reference(*others))  # type: ignore[arg-type]
    for exchange, key in sent:
        peer.publish(key, b"x", exchange)
        found += peer.got()
    found += [(each.name, len(each.inside)) for each in world.broker.queues]
    return found


@pytest.mark.parametrize("key", ["a.b", "a.c"])
@pytest.mark.parametrize("exchange", ["", "amq.topic", "amq.direct", "amq.fanout", "amq.headers"])
def test_a_restricted_publisher_is_asked_for_its_rights(exchange: str, key: str) -> None:
    sent = [(exchange, key if exchange else "q")] * 3
    answers = ruled(sent, compiled=True)
    assert answers == ruled(sent, compiled=False)
    *methods, (_, kept) = [each.method if isinstance(each, Got) else each for each in answers]
    if (exchange, key) in {("amq.topic", "a.b"), ("amq.direct", "a.b"), ("amq.direct", "a.c"), ("amq.headers", "a.b")}:
        assert methods[:3] == [basic.BasicAck(1), basic.BasicAck(2), basic.BasicAck(3)]
        assert kept == (3 if key == "a.b" else 0)
        del methods[:3]
    assert [type(each) for each in methods] == [first.ChannelClose]


def test_a_publisher_without_a_badge_is_refused_where_rules_are_in_force() -> None:
    side = Side(compiled=True, confirming=False)
    side.writer.protocol.lane.badge = None
    side.world.broker.ledger.restricted = True
    before = len(side.writer.protocol.lane.sites or ())
    side.writer.publish("a.b", b"x", "direct")
    assert len(side.writer.protocol.lane.sites or ()) == before + 1
    assert side.world.broker.ledger.messages_in == 1  # by Python, which was asked


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_publish_is_the_lanes_where_the_key_alone_decides(exchange: str) -> None:
    side = Side(compiled=True, confirming=False)
    side.writer.publish("a.b" if exchange else "q", b"x", exchange)
    sites = side.writer.protocol.lane.sites
    assert sites is not None
    assert len(sites) == (exchange not in ("late", "missing"))


def test_confirms_that_leave_together_are_one_frame() -> None:
    side = Side(compiled=True, confirming=True)
    side.writer.send(published("q", b"x") * 5)
    assert [got.method for got in side.writer.got()] == [basic.BasicAck(5, True)]
    side.writer.publish("q", b"x")
    assert [got.method for got in side.writer.got()] == [basic.BasicAck(6, False)]


def test_a_message_without_room_for_its_body_reaches_no_queue() -> None:
    """The consumer of one queue got it, the other queue dropped it, and the publisher still got basic.ack."""
    world = World()
    reader, writer = world.channel(), world.channel()
    for queue in ("q", "r"):
        reader.declare(queue)
        reader.ask(entity.QueueBind(queue=queue, exchange="amq.fanout"))
    reader.consume("q", "automatic", no_ack=True)
    writer.ask(entity.ConfirmSelect())
    ledger = world.broker.ledger
    for body, answer in ((b"x" * 4_000, basic.BasicNack(1, requeue=False)), (b"x" * 100, basic.BasicAck(2))):
        ledger.stored_limit = ledger.stored + 2_000
        writer.publish("", body, "amq.fanout")
        assert [got.method for got in writer.got()] == [answer]
    assert [got.body for got in reader.got()] == [b"x" * 100]
    assert reader.counts("r") == (1, 0)


def test_acks_of_two_channels_are_not_joined() -> None:
    side = Side(compiled=True, confirming=True)
    side.writer.ask(first.ChannelOpen(), 2)
    side.writer.ask(entity.ConfirmSelect(), 2)
    side.writer.send(*[published("q", b"x", channel=1) + published("q", b"x", channel=2)] * 2)
    assert [(got.channel, got.method) for got in side.writer.got()] == [
        (1, basic.BasicAck(1)), (2, basic.BasicAck(1)), (1, basic.BasicAck(2)), (2, basic.BasicAck(2)),
    ]  # fmt: skip


def test_a_channel_with_a_transaction_is_pythons() -> None:
    side = Side(compiled=True, confirming=False)
    channel = side.writer.protocol.lane.open_channel(1)
    side.writer.send(method_frame(1, entity.TxSelect()))
    assert channel.plain


def test_a_reply_to_of_the_broker_is_pythons() -> None:
    own = encode_properties(BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    assert is_plain(encode_header(0, own)) is None


# -- content headers, deliveries ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    properties=basic_properties, size=st.integers(0, 2**40), tail=st.sampled_from([b"", b"\0"]), cut=st.integers(0, 4)
)  # fmt: skip
def test_a_plain_content_header_says_what_python_reads(
    properties: BasicProperties, size: int, tail: bytes, cut: int
) -> None:
    payload = encode_header(size, encode_properties(properties)) + tail
    payload = payload[: len(payload) - cut]
    found = is_plain(payload)
    try:
        header = read_header(payload)
    except AmqpError:
        assert found is None
        return
    read = header.properties
    if found is not None:
        entries = encode_table(read.headers)[UINT32.size :] if read.headers is not None else b""
        assert found == (
            header.body_size, header.encoded, read.priority or 0, read.delivery_mode == PERSISTENT,
            read.reply_to is not None, -1 if read.expiration is None else int(read.expiration),
            None if read.user_id is None else read.user_id.encode(), entries,
        )  # fmt: skip
        assert not {"CC", "BCC"} & set(read.headers or {})
    elif not {"CC", "BCC"} & set(read.headers or {}):
        assert read.expiration is not None
        assert not (read.expiration.isascii() and read.expiration.isdecimal() and int(read.expiration) < 2**32)


def nest(depth: int, letter: bytes = b"F") -> bytes:
    """A header `a` with so many tables, or arrays, in each other; the table around it is the first."""
    value = b"V"
    for _ in range(depth - 1):
        value = letter + long_string((b"\1a" if letter == b"F" else b"") + value)
    return encode_header(0, b"\x20\x00" + long_string(b"\1a" + value))


@pytest.mark.parametrize("letter", [b"F", b"A"])
def test_tables_are_as_deep_here_as_python_has_them(letter: bytes) -> None:
    assert is_plain(nest(DEPTH_MAX, letter)) is not None
    read_header(nest(DEPTH_MAX, letter))
    assert is_plain(nest(DEPTH_MAX + 1, letter)) is None
    with pytest.raises(AmqpError):
        read_header(nest(DEPTH_MAX + 1, letter))


@settings(deadline=None)
@given(table=tables, at=st.integers(0, 200), octet=st.integers(0, 255))
def test_tables_with_a_wrong_octet_are_refused_or_read_as_python_reads_them(
    table: dict[str, Any], at: int, octet: int
) -> None:
    encoded = bytearray(encode_properties(BasicProperties(headers=table)))
    encoded[2 + at % (len(encoded) - 2)] = octet
    found = is_plain(encode_header(0, bytes(encoded)))
    try:
        read = read_header(encode_header(0, bytes(encoded))).properties.headers or {}
    except (AmqpError, OverflowError):
        assert found is None
        return
    assert (found is None) == bool({"CC", "BCC"} & set(read))


def celery_task() -> dict[str, Any]:
    """What Celery 5 sends with a task: tables and arrays in its headers, an expiration where it was asked for."""
    headers: dict[str, Any] = {
        "lang": "py", "task": "tasks.add", "id": "d0", "shadow": None, "eta": None, "expires": None, "group": None,
        "group_index": None, "retries": 0, "timelimit": [None, None], "root_id": "d0", "parent_id": None,
        "argsrepr": "(1, 2)", "kwargsrepr": "{}", "origin": "gen1@host", "ignore_result": False,
        "replaced_task_nesting": 0, "stamped_headers": None, "stamps": {},
    }  # fmt: skip
    return {
        "content_type": "application/json", "content_encoding": "utf-8", "headers": headers, "delivery_mode": 2,
        "priority": 0, "correlation_id": "d0", "reply_to": "1f", "expiration": "30000", "user_id": "guest",
    }


def test_a_task_of_celery_is_the_lanes() -> None:
    side = Side(compiled=True, confirming=False)
    side.writer.publish("q", b"[[1, 2], {}, {}]", **celery_task())
    assert len(side.writer.protocol.lane.sites or ()) == 1
    (got,) = side.reader.got()
    assert got.properties == BasicProperties(**celery_task())


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_further_keys_are_pythons(name: str) -> None:
    assert is_plain(encode_header(0, encode_properties(BasicProperties(headers={"a": 1, name: None})))) is None


@settings(deadline=None)
@given(
    exchange=texts, key=texts, properties=basic_properties, tag=texts, channel=st.integers(1, 65_535),
    size=st.sampled_from([0, 1, 100, 4_088, 4_089, 4_096, 4_097, 9_000]), frame_max=st.sampled_from([4_096, 131_072]),
)  # fmt: skip
def test_a_delivery_is_the_one_that_python_writes(
    exchange: str, key: str, properties: BasicProperties, tag: str, channel: int, size: int, frame_max: int
) -> None:
    fields = pack_fields(exchange, key, encode_properties(properties))
    message = Message(FORMAT, b"topic", SYNTAX, bytes(size), fields=fields, expires_at=inf)
    writer = DeliverWriter(channel, tag, frame_max)
    head, tag_at, body = writer(message)
    format = AmqpDeliveryFormat(ChannelTags(), writer)
    written = frame_of(Variant(format), message)
    assert written is not None
    assert format.tag_at == tag_at
    blank = bytes(9)
    assert written[:tag_at] + blank + written[tag_at + 9 :] == head[:tag_at] + blank + head[tag_at + 9 :] + body
