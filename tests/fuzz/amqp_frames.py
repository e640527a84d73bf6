"""Frames of an AMQP client, valid and nearly so, for what changes them: test_amqp.py and running.py."""

from typing import Final

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.frames import HEARTBEAT, PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.methods import method_frame
from tests.broker.protocols.amqp.world import PLAIN, published

ARGUMENTS: Final = {"x-max-length": 5, "x-message-ttl": 60_000, "t": {"a": [1, "b", None, 2.5, b"\0"]}}
HANDSHAKE: Final = b"".join([
    PROTOCOL_HEADER, method_frame(0, PLAIN), method_frame(0, first.ConnectionTuneOk(2_047, 131_072, 0)),
    method_frame(0, first.ConnectionOpen("/")), method_frame(1, first.ChannelOpen()),
])  # fmt: skip
ON_CHANNEL_0: Final = (
    PLAIN, PLAIN._replace(mechanism="SCRAM-SHA-256", response=b"n,,n=u,r=0123456789"), first.ConnectionSecureOk(b"x"),
    first.ConnectionTuneOk(10, 4_096, 60), first.ConnectionOpen("/"), first.ConnectionUpdateSecret(b"secret", "why"),
    first.ConnectionClose(200, "bye", 60, 40),
)  # fmt: skip
ON_CHANNEL_1: Final = (
    first.ChannelOpen(), first.ChannelFlow(True), first.ChannelClose(200, "bye", 0, 0), first.ChannelCloseOk(),
    entity.ExchangeDeclare(exchange="e", type="topic", arguments={"alternate-exchange": "amq.fanout"}),
    entity.ExchangeBind(destination="e", source="amq.fanout", routing_key="k"), entity.ExchangeDelete(exchange="e"),
    entity.QueueDeclare(queue="q", arguments=ARGUMENTS), entity.QueueDeclare(queue="x", exclusive=True),
    entity.QueueBind(queue="q", exchange="amq.headers", arguments={"x-match": "any", "h": 1}),
    entity.QueueUnbind(queue="q", exchange="amq.headers", arguments={"x-match": "any", "h": 1}),
    entity.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*.#"), entity.QueuePurge(queue="q"),
    entity.QueueDelete(queue="q"), basic.BasicQos(0, 3), basic.BasicQos(0, 2, True),
    basic.BasicConsume(queue="q", consumer_tag="c"), basic.BasicConsume(queue="q", no_ack=True),
    basic.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True), basic.BasicCancel("c"),
    basic.BasicGet(queue="q"), basic.BasicAck(1), basic.BasicAck(0, True), basic.BasicNack(2, True, True),
    basic.BasicReject(1, False), basic.BasicRecover(True), entity.ConfirmSelect(), entity.TxSelect(),
    entity.TxCommit(), entity.TxRollback(),
)  # fmt: skip
CONTENTS: Final = (
    published("q", b"hello", mandatory=True, headers={"h": 1, "CC": ["q", "a.b"], "BCC": ["x"]}, priority=3),
    published("q", b"x" * 5_000, frame_max=4_096, delivery_mode=2, expiration="60000", reply_to="r", timestamp=1),
    published("a.b", b"", "amq.topic", message_id="m", type="t", app_id="a", user_id="guest", correlation_id="7"),
    published("q", b"question", reply_to="amq.rabbitmq.reply-to"),
)
FRAMES: Final = (
    HEARTBEAT, *(method_frame(0, each) for each in ON_CHANNEL_0), *(method_frame(1, each) for each in ON_CHANNEL_1),
    *CONTENTS,
)  # fmt: skip
# An honest client's: its answer ends with OK.
QUESTION: Final = HANDSHAKE + method_frame(1, first.ChannelFlow(True))
OK: Final = method_frame(1, first.ChannelFlowOk(True))
