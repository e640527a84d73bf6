"""Publishing on one channel (1.8.3.10, 4.2.6): a method, a content header and body frames become one message.

    basic.publish --> header --> body ... body --> Exchanges.publish --> Publishing.accept --> return, confirm
                                           '-- stays at hand while an outbox or a full queue holds the message back

What has come of a body counts in the inbox, and so for `inboxes_bytes_max`.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, Final

from fanlight_broker.core.errors import FanlightError, InvalidTopic, NotPermitted, QueueFull
from fanlight_broker.core.paces import holding
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Refused, Repeated
from fanlight_broker.protocols.amqp.basic_methods import BasicAck, BasicNack, BasicPublish, BasicReturn
from fanlight_broker.protocols.amqp.content_frames import with_content
from fanlight_broker.protocols.amqp.delays import DELAY, delay_of, turned
from fanlight_broker.protocols.amqp.direct_reply import DIRECT_REPLY
from fanlight_broker.protocols.amqp.errors import AmqpError, reply_text
from fanlight_broker.protocols.amqp.fields import SYNTAX, TOPIC_EXCHANGE, pack_fields, topic_of
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.frames import FrameType
from fanlight_broker.protocols.amqp.methods import encode_method
from fanlight_broker.protocols.amqp.permitted_keys import check_more_keys
from fanlight_broker.protocols.amqp.properties import (
    BASIC_CLASS,
    EXPIRATION_MAX,
    PERSISTENT,
    BasicProperties,
    ContentHeader,
    encode_properties,
    read_header,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.routing import route_of
from fanlight_broker.protocols.amqp.sides import ChannelSide
from fanlight_broker.protocols.amqp.transactions import ChannelTransaction, HeldMessage, HeldSender
from fanlight_broker.wire.message import Message

MORE_KEYS_MAX: Final = 256  # of CC and BCC: each is routed and asked about in one step, in some 5 µs


@dataclass(slots=True)
class ContentUnderWay:
    method: BasicPublish
    header: ContentHeader | None = None
    chunks: list[bytes] = field(default_factory=list)
    received: int = 0  # bytes of the body
    counted: int = 0  # of them, those kept here


class ChannelPublisher:
    __slots__ = ("_channel", "_connection", "_content", "_shared", "transaction")

    def __init__(self, channel: ChannelSide) -> None:
        self._channel = channel
        self._connection = channel.connection
        self._content: ContentUnderWay | None = None
        self.transaction: ChannelTransaction | None = None
        self._shared = channel.connection.lane.open_channel(channel.number)  # with the lane

    @property
    def things(self) -> tuple[object, ...]:
        """What the garbage collector need not look at as long as the channel is open (wire/hidden.pxd)."""
        return self, self._shared

    @property
    def confirming(self) -> bool:
        return self._shared.confirming

    @confirming.setter
    def confirming(self, confirming: bool) -> None:
        self._shared.confirming = confirming

    @property
    def under_way(self) -> bool:
        """Has a basic.publish come whose content is not complete?"""
        return self._content is not None

    def begin(self, method: BasicPublish, now: float) -> None:
        if method.immediate:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "immediate=true")
        self._content = ContentUnderWay(method)
        self._shared.under_way = True

    def end(self) -> None:
        """The channel is closed."""
        self.abandon()
        self._connection.lane.close_channel(self._channel.number)

    def abandon(self) -> None:
        """What has come of a content is not needed any more."""
        content, self._content = self._content, None
        self._shared.under_way = False
        if content is not None and content.counted:
            self._connection.inbox.keep_outside(-content.counted)

    def take(self, now: float) -> bool:
        """The content frame at hand. False if the message that it completes is held back: it stays at hand.

        Raises AmqpError; then the frame is still at hand.
        """
        lane, content = self._connection.lane, self._content
        if content is None:
            raise unexpected("a content frame without a basic.publish before it")
        payload = lane.payload()
        if lane.kind == FrameType.HEADER:
            if content.header is not None:
                raise unexpected("a second content header")
            header = read_header(payload)
            if header.class_id != BASIC_CLASS:
                raise unexpected(f"a content header of the class {header.class_id}, not {BASIC_CLASS}")
            if header.body_size == 0:
                return self._complete(content, header, b"", now)  # if it is held back, the frame comes here again
            content.header = header
        else:
            if content.header is None:
                raise unexpected("a body without a content header")
            received = content.received + len(payload)
            if received > content.header.body_size:
                raise unexpected(f"a body of {received} bytes, of which the header says {content.header.body_size}")
            if received == content.header.body_size and payload:
                return self._complete(content, content.header, payload, now)
            self._keep(content, payload)
        lane.done()
        return True

    def _keep(self, content: ContentUnderWay, payload: bytes) -> None:
        content.received += len(payload)
        assert content.header is not None
        if payload and content.header.body_size <= self._connection.options.message_bytes_max:
            content.chunks.append(payload)
            content.counted += len(payload)
            self._connection.inbox.keep_outside(len(payload))

    def _complete(self, content: ContentUnderWay, header: ContentHeader, last: bytes, now: float) -> bool:
        """False: held back. Raises FanlightError."""
        most = self._connection.options.message_bytes_max
        if header.body_size > most:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED,
                f"message size {header.body_size} is larger than configured max size {most}",
            )
        if header.body_size > self._connection.lane.publish_max:  # a quota
            self._connection.broker.clients.check_size(header.body_size, self._connection.lane.publish_max)
        payload = b"".join((*content.chunks, last)) if content.chunks else last
        if self.transaction is not None:
            publication, _ = self._made(content.method, header, payload, now)
            self._connection.broker.publishing.route(publication)  # may its publisher?
            self.transaction.keep(HeldMessage(content.method, header, payload))
            self._connection.lane.done()
        elif not self._publish(content.method, header, payload, now):
            return False
        self.abandon()
        return True

    # -- the message ------------------------------------------------------------------------------------------------

    def _made(
        self, method: BasicPublish, header: ContentHeader, payload: bytes, now: float
    ) -> tuple[Publication, bytes]:
        """The message with its route, and its properties as consumers get them. Raises AmqpError, NotPermitted."""
        connection, broker, properties = self._connection, self._connection.broker, header.properties
        self._check(properties)
        encoded = header.encoded
        if properties.reply_to == DIRECT_REPLY:
            properties = replace(properties, reply_to=self._channel.reply_address)
            encoded = encode_properties(properties)
        headers = properties.headers or {}
        copied, hidden = keys_in(headers, "CC"), keys_in(headers, "BCC")
        if (more := len(copied) + len(hidden)) > MORE_KEYS_MAX:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED, f"{more} keys in CC and BCC; at most {MORE_KEYS_MAX}"
            )
        if "BCC" in headers:
            shown = {name: value for name, value in headers.items() if name != "BCC"}
            encoded = encode_properties(replace(properties, headers=shown))
        reached = connection.vhost.exchanges.publish(
            method.exchange, method.routing_key, headers, properties, (*copied, *hidden)
        )
        delay = delay_of(connection.vhost.exchanges, method.exchange, headers) if DELAY in headers else 0
        if delay:
            encoded = turned(encoded, delay)
        topic = topic_of(method.exchange, method.routing_key, reached)
        message = Message(
            FORMAT, topic, SYNTAX, payload, fields=pack_fields(method.exchange, method.routing_key, encoded),
            qos=1 if properties.delivery_mode == PERSISTENT else 0, format_data=properties.priority or 0,
            expires_at=now + int(properties.expiration) / 1_000 if properties.expiration is not None else inf,
        )
        if copied or hidden or (reached.topics and method.exchange != TOPIC_EXCHANGE):
            keys = (method.routing_key, *copied, *hidden)
            check_more_keys(broker.enforcement, connection.subscriber, method.exchange, keys, reached, message)
        publication = Publication(
            message, connection.subscriber, route=route_of(reached, broker), requests=properties.reply_to is not None,
            due=now + delay / 1_000 if delay else None,
        )
        return publication, encoded

    def _publish(self, method: BasicPublish, header: ContentHeader, payload: bytes, now: float) -> bool:
        """False: held back. Raises AmqpError for what closes the channel; the frame is at hand then."""
        connection, lane, broker = self._connection, self._connection.lane, self._connection.broker
        publication, encoded = self._made(method, header, payload, now)
        number = self._shared.published + 1
        receipt = partial(self._confirm, number, method, encoded, payload) if self.confirming else None
        lane.offer(publication.message)
        outcome = Refused(QueueFull("no queue had room for long")) if connection.gave_up else \
            broker.publishing.accept(publication, lane, now, receipt)
        if outcome is HELD:
            return False
        self._shared.published = number
        match outcome:
            case Refused(error=error):
                lane.done()
                try:
                    self._refuse(number, error)
                finally:
                    del outcome, error  # else an exception and the frames that it refers to would keep each other
                return True
            case Repeated() | Accepted(forwarded=False):
                lane.done()
        if isinstance(outcome, Accepted) and receipt is None:
            self._return_unrouted(outcome, method, encoded, payload)
            connection.counts.discarded += not outcome.kept
        return True

    def publish_held(self, held: HeldMessage, now: float) -> bool | None:
        """One message of a transaction. None: it has to wait. False: it was refused. Raises AmqpError, NotPermitted."""
        broker = self._connection.broker
        bucket = holding(self._connection.outbox.pace, now)  # the lane looks at it for the frame tx.commit alone
        if bucket is not None:
            self._connection.lane.hold_back(bucket.gate)
            return None
        publication, encoded = self._made(held.method, held.header, held.payload, now)
        sender = HeldSender(broker.ledger, publication.message, self._connection)
        outcome = broker.publishing.accept(publication, sender, now)
        if outcome is HELD:
            return None
        if isinstance(outcome, Refused):
            if isinstance(outcome.error, NotPermitted | InvalidTopic):
                try:
                    raise outcome.error
                finally:
                    del outcome
            return False
        assert isinstance(outcome, Accepted)
        self._return_unrouted(outcome, held.method, encoded, held.payload)
        return outcome.kept

    def _check(self, properties: BasicProperties) -> None:
        """Raises AmqpError 406."""
        expiration, user = properties.expiration, properties.user_id
        if expiration is not None and not (
            expiration.isascii() and expiration.isdecimal() and len(expiration) <= 10
            and int(expiration) <= EXPIRATION_MAX
        ):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid expiration '{expiration}'")
        if user is not None and user != self._connection.login:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED,
                f"user_id property set to '{user}' but authenticated user was '{self._connection.login}'",
            )

    # -- answers ----------------------------------------------------------------------------------------------------

    def _confirm(
        self, number: int, method: BasicPublish, encoded: bytes, payload: bytes, outcome: Accepted | Repeated
    ) -> None:
        """It is stored, and may be acknowledged; a message that comes back does so before that."""
        if not self._channel.is_open:
            return
        if isinstance(outcome, Accepted):
            self._return_unrouted(outcome, method, encoded, payload)
            if not outcome.kept:
                self._nack(number)
                return
        self._channel.send(BasicAck(number))
        self._connection.counts.confirms += 1

    def _nack(self, number: int) -> None:
        self._channel.send(BasicNack(number, False, False))
        self._connection.counts.confirm_refusals += 1

    def _refuse(self, number: int, error: FanlightError) -> None:
        """The message was not accepted. Raises what closes the channel."""
        if isinstance(error, NotPermitted | InvalidTopic):
            self.abandon()
            self._connection.done = True
            try:
                raise error
            finally:
                del error
        if self.confirming:
            self._nack(number)
        else:
            self._connection.counts.discarded += 1

    def _return_unrouted(self, outcome: Accepted, method: BasicPublish, encoded: bytes, payload: bytes) -> None:
        if outcome.routed or outcome.delayed or not method.mandatory:
            return
        self._connection.counts.returned += 1
        text = reply_text(ReplyCode.NO_ROUTE, "").removesuffix(" - ")
        back = encode_method(BasicReturn(ReplyCode.NO_ROUTE, text, method.exchange, method.routing_key))
        head, body = with_content(self._channel.number, back, encoded, payload, self._connection.frame_max)
        self._connection.outbox.write(head + body)


def keys_in(headers: Any, name: str) -> list[str]:
    """The further routing keys in a header; what is no text is left out. Raises AmqpError 406."""
    value = headers.get(name)
    if value is None and name not in headers:
        return []
    if not isinstance(value, list):
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid {name} header: it is no array")
    return [each for each in value if isinstance(each, str)]


def unexpected(text: str) -> AmqpError:
    return AmqpError(ReplyCode.UNEXPECTED_FRAME, text)
