"""One native connection: acts on a client's frames. Bytes arrive in the inbox and leave through the outbox.

The loop over the input, and the life cycle of all connections, are in core/connection.py.
"""

from functools import partial
from typing import Any, Final

from fanlight_broker import __version__, event_log
from fanlight_broker.core import errors
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ConnectionState, ProtocolConnection
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.marks import Mark, mark_user
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Refused, Repeated
from fanlight_broker.core.selectors import condition_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.subscription import PLAIN, Subscription, SubscriptionOptions
from fanlight_broker.core.topics import SYNTAXES, syntax_of, words_of
from fanlight_broker.protocols.native import frames, lane
from fanlight_broker.protocols.native.codec import LENGTH, decode
from fanlight_broker.protocols.native.consumers import ConnectionConsumers
from fanlight_broker.protocols.native.error_codes import CODES
from fanlight_broker.protocols.native.fields import U32_MAX, shown
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.protocols.native.frames import (
    AckFrame,
    ChangeConsumerFrame,
    ConsumeFrame,
    CreditFrame,
    GoodbyeFrame,
    HelloFrame,
    Incoming,
    InProgressFrame,
    NackFrame,
    PingFrame,
    PongFrame,
    QueueFrame,
    ReplayFrame,
    SubscribeFrame,
    TermFrame,
    UnsubscribeFrame,
)
from fanlight_broker.protocols.native.plain_request import plain_request
from fanlight_broker.protocols.native.publish_options import due_of
from fanlight_broker.protocols.native.queue_requests import ConnectionQueues
from fanlight_broker.protocols.native.refusals import Refusals
from fanlight_broker.protocols.native.replays import ConnectionReplays
from fanlight_broker.protocols.native.state import LEGAL
from fanlight_broker.wire.hidden import hide, show
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import TOO_LARGE
from fanlight_broker.wire.target import UNLIMITED

FEATURES: Final = ("marks", "queues", "delay", "cancel", "where")
NOTICE_ROOM: Final = 1_024  # bytes: a client that leaves more unread gets no HELD

REQUESTS: Final = (
    frames.Type.SUBSCRIBE, frames.Type.UNSUBSCRIBE, frames.Type.PUBLISH, frames.Type.REPLAY, frames.Type.QUEUE,
    frames.Type.CONSUMER,
)
TIMED: Final = (frames.Type.SUBSCRIBE, frames.Type.UNSUBSCRIBE)  # what `subscribing_percent` is about


class NativeConnection(ProtocolConnection):
    """The protocol side of one connection."""

    protocol: Final = "native"
    log = event_log.get("native")
    lane: lane.NativeLane

    def __init__(self, broker: Broker, transport: Transport, shared: ReceiveBuffer, now: float) -> None:
        outbox, inbox, limits = broker.new_outbox(), Inbox(shared, broker.ledger), broker.limits
        # Frames behind HELLO wait until the credentials are checked: so no more than this is read before.
        inbox.read_max = LENGTH.size + limits.handshake_frame_bytes_max
        inbox.stranger(inbox.read_max)
        super().__init__(broker, transport, now, lane.NativeLane(
            inbox, outbox, broker.routes, broker.ledger,
            frame_max=limits.handshake_frame_bytes_max, control_max=limits.control_bytes_max,
        ))
        self._serve(broker)
        self.refusals = Refusals()
        self.pinged_at: float | None = None  # by the broker; a later activity is the answer
        self._hello: HelloFrame | None = None
        self._pings = 0
        self._notified_held = False

    def _serve(self, broker: Namespace) -> None:
        """What acts on requests in a namespace: made anew where the client is moved, so that nothing stays behind."""
        self.replays = ConnectionReplays(broker, self.outbox)
        self.consumers = ConnectionConsumers(broker, self.outbox, self.lane)
        self.queues = ConnectionQueues(broker, self.outbox, self.lane)

    # -- input -----------------------------------------------------------------------------------------------------

    def handle(self, now: float) -> None:
        self._handle(self.lane.frame(), now)

    def publish(self, now: float) -> bool:
        """Publish the PUBLISH at hand, which the lane left to Python. False if an outbox holds it back."""
        lane, request = self.lane, self.lane.request
        receipt = None if request is None else partial(self._give_receipt, request)
        try:
            self.check_size()
            outcome = self.broker.publishing.accept(self._publication(now), lane, now, receipt)
        except errors.FanlightError as error:
            outcome = Refused(error)
        match outcome:
            case Repeated() | Accepted(forwarded=False):
                lane.done()
            case Refused(error=refusal):
                self._refuse_publish(request, refusal)
        return outcome is not HELD

    def _publication(self, now: float) -> Publication:
        """The PUBLISH at hand. Raises Unsupported, InvalidTopic, ProtocolViolation, and the error of an earlier one of
        its batch.
        """
        lane, number = self.lane, self.lane.mark
        if number is not None:
            self.refusals.check(number)
        syntax = syntax_of(lane.syntax)
        if lane.reply is not None:
            words_of(lane.reply, syntax, self.broker.limits)
        assert self.client is not None
        publisher = self.client.subscriber
        mark = None
        if number is not None:
            mark = Mark(mark_user(publisher.namespace, publisher.user), *number)
        return Publication(
            lane.message, publisher, mark,
            due=due_of(lane.options, self.broker.delayed, now) if lane.options is not None else None,
            requests=lane.reply is not None,
        )

    def _refuse_publish(self, request: int | None, error: errors.FanlightError) -> None:
        number = self.lane.mark
        self.lane.done()
        if number is not None:
            self.refusals.add(number, error)
        self._answer(request, error)

    def _give_receipt(self, request: int, outcome: Accepted | Repeated) -> None:
        if self.state is ConnectionState.CONNECTED:
            repeated = isinstance(outcome, Repeated)
            routed, id = (outcome.routed, outcome.id) if isinstance(outcome, Accepted) else (0, 0)
            self.outbox.write(frames.receipt(request, routed, repeated=repeated, delayed=id))
            self.broker.ledger.count_receipt()

    def reject(self, event: int) -> None:
        if event == TOO_LARGE:
            setting = "frame_bytes_max" if self.client else "handshake_frame_bytes_max"
            raise errors.FrameTooLarge(self.lane.frame_size, self.lane.frame_max, setting)
        self.fail(errors.ProtocolViolation(self.lane.fault), self.lane.fault_request)

    @property
    def refused(self) -> int:
        return super().refused + self.replays.failed

    @property
    def things(self) -> tuple[object, ...]:
        return *super().things, self.replays, self.consumers, self.queues, self.refusals

    # -- life cycle ------------------------------------------------------------------------------------------------

    def lost(self, reason: str) -> list[Client]:
        self.replays.cancel_all()
        return super().lost(reason)

    def end(self) -> None:
        self.queues.end_all()
        self.consumers.end_all(self.transport.now())

    def check_silence(self, silence: float, now: float) -> None:
        """Ping a silent peer, and close the connection of one that stays silent."""
        most = self.broker.limits.idle_seconds_max
        if self.outbox.sits_out:
            self.lane.note_activity(now)  # PING would wait with what is not sent: the silence so far does not count
            return
        if not most:
            return
        if silence >= most:
            self.say_goodbye("idle_timeout", f"nothing received for {most:g} s; answer PING with PONG")
        elif silence >= most / 2 and (self.pinged_at is None or self.pinged_at < self.lane.last_activity):
            self.pinged_at = self.broker.ledger.awake(now)
            self._pings += 1
            self.outbox.write(frames.ping(self._pings & U32_MAX))

    def farewell(self, reason: str, text: str) -> bytes:
        return frames.goodbye(reason, text)

    def refill(self, now: float) -> None:
        self.replays.drained()
        self.consumers.drained(now)

    def subscription_ended(self, subscription: Subscription, reason: str) -> None:
        if subscription.number in self.replays:
            self.replays.deny(subscription.number)
            return
        self.outbox.write(frames.ended(subscription.number, reason, subscription.delivered, subscription.dropped))

    def notify_held(self, held: bool, seconds: float) -> None:
        # A client that publishes and reads nothing must not be blocked by notices that it did not request.
        wanted = self.outbox.size < NOTICE_ROOM if held else self._notified_held
        if self.state is ConnectionState.CONNECTED and wanted:
            self._notified_held = held
            self.outbox.write(frames.held(held, seconds))

    # -- frames -----------------------------------------------------------------------------------------------------

    def _handle(self, body: bytes, now: float) -> None:
        if self.broker.ledger.ended:
            self.broker.finish()  # so that ENDED comes before the answers to what was sent later
        began = self.broker.turns.now(0.0)
        if self.state is ConnectionState.CONNECTED:
            plain = plain_request(body)
            if plain is not None:
                self._act_plainly(*plain, now)
                self.note_work(began)
                return
        values = decode(body)
        request = request_of(values)
        try:
            if values[0] == frames.Type.PUBLISH:
                raise errors.ProtocolViolation("PUBLISH before the handshake is done; send HELLO first")
            if values[0] == frames.Type.REPLAY and self.broker.replay_source is None:
                request = None  # as for any unknown type
                raise errors.Unsupported("this broker keeps no archive, so there is nothing to replay", type=values[0])
            frame = frames.parse(values)
            if type(frame) not in LEGAL[self.state]:
                raise errors.ProtocolViolation(f"{frames.Type(values[0]).name} is not allowed now")
            self._act(frame, now)
        except errors.FanlightError as error:
            self._answer(request, error)
        if values[0] in TIMED:
            self.note_work(began)

    def _act_plainly(
        self, kind: int, request: int | None, number: int, filter: bytes, syntax: int, now: float
    ) -> None:
        """SUBSCRIBE and UNSUBSCRIBE without options except the syntax: a client may send a million."""
        assert self.client is not None
        try:
            if kind == frames.Type.UNSUBSCRIBE:
                self._end_subscription(request, number, now)
                return
            self._check_number(number)
            self.broker.subscribing.subscribe(self.client, number, filter, SYNTAXES[syntax], PLAIN)
            if request is not None:
                self.outbox.write(frames.ok(request))
        except errors.FanlightError as error:
            self._answer(request, error)

    def _act(self, frame: Incoming, now: float) -> None:
        match frame:
            case HelloFrame():
                self._on_hello(frame, now)
            case SubscribeFrame():
                self._on_subscribe(frame)
            case ReplayFrame():
                self.consumers.check_number(frame.subscription)
                self.replays.begin(self.client, frame)
            case UnsubscribeFrame():
                self._on_unsubscribe(frame, now)
            case ConsumeFrame():
                assert self.client is not None
                self.replays.check_number(frame.subscription)
                self.consumers.begin(self.client, frame, now)
            case ChangeConsumerFrame():
                self.consumers.change(frame, now)
            case AckFrame():
                self.consumers.acknowledge(frame, now)
            case NackFrame():
                self.consumers.refuse(frame, now)
            case TermFrame():
                self.consumers.reject(frame, now)
            case InProgressFrame():
                self.consumers.prolong(frame, now)
            case QueueFrame():
                assert self.client is not None
                self.queues.act(self.client, frame, now)
            case CreditFrame():
                self._on_credit(frame)
            case PingFrame():
                self.consumers.confirm(partial(self.outbox.write, frames.pong(frame.token)))
            case PongFrame():
                pass  # `receive` has noted that the peer is alive
            case GoodbyeFrame():
                self.leave(f"the client said goodbye: {shown(frame.reason)}")

    def _on_hello(self, hello: HelloFrame, now: float) -> None:
        if hello.version < frames.VERSION:
            raise errors.UnsupportedVersion(
                f"version {hello.version}; this broker speaks {frames.VERSION}", versions=[frames.VERSION]
            )
        self.broker.clients.check_names(hello.client, hello.user)
        self._hello = hello
        self.verify(hello.user, hello.password, now, hello.client or "")

    def move(self, home: Namespace) -> None:
        super().move(home)
        show(self.replays, self.consumers, self.queues)
        self._serve(home)
        hide(self.replays, self.consumers, self.queues)

    def welcome(self, identity: Identity, now: float) -> None:
        hello, limits = self._hello, self.broker.limits
        assert hello is not None
        if hello.slow_policy is not None:
            self.broker.flow.admit(self.outbox, hello.slow_policy.value)
        origin = self.enter(identity, self.protocol)
        self.client = self.broker.clients.connect(
            self.outbox, self, now,
            name=hello.client, user=identity.user, verified=identity.verified, label=identity.label,
            agent=hello.agent, address=self.transport.address, port=self.transport.port, protocol=self.protocol,
            format=FORMAT, origin=origin, limits=identity.limits,
        )
        self.state = ConnectionState.CONNECTED
        self._hello = None  # a password is kept no longer than needed
        self.lane.frame_max = limits.frame_bytes_max
        self.lane.open = True
        self.admit()
        # A DELIVERY is 18 bytes longer than its PUBLISH (section 2); one from another protocol could be longer still.
        self.outbox.frame_max = LENGTH.size + limits.frame_bytes_max + 18
        self.outbox.write(
            frames.welcome(
                frames.VERSION,
                {
                    "server": f"fanlight/{__version__}",
                    "connection": self.client.number,
                    "client": self.client.subscriber.name,
                    "inbox": self.client.subscriber.inbox,
                    "slow_policy": self.outbox.policy,
                    "idle_seconds": limits.idle_seconds_max,
                    "features": [*(["replay"] if self.broker.replay_source is not None else []), *FEATURES],
                    "limits": {
                        "frame_bytes": limits.frame_bytes_max,
                        "topic_bytes": limits.topic_bytes_max,
                        "topic_words": limits.topic_words_max,
                        "subscriptions": limits.subscriptions_per_client_max,
                        "pending_messages": limits.pending_messages_max,
                        "outbox_bytes": limits.outbox_bytes_max,
                    },
                },
            )
        )

    def _on_subscribe(self, frame: SubscribeFrame) -> None:
        assert self.client is not None
        self._check_number(frame.subscription)
        if frame.after == 0:
            raise errors.ProtocolViolation("SUBSCRIBE option after must be 1 or more; leave it out for no end")
        self.broker.subscribing.subscribe(
            self.client, frame.subscription, frame.filter, syntax_of(frame.syntax),
            SubscriptionOptions(
                group=frame.group,
                no_echo=frame.no_echo,
                credit=UNLIMITED if frame.credit is None else frame.credit,
                waiting_max=frame.pending_messages,
                after=UNLIMITED if frame.after is None else frame.after,
                condition=condition_of(frame.where) if frame.where is not None else None,
            ),
        )
        if frame.request is not None:
            self.outbox.write(frames.ok(frame.request))

    def _check_number(self, number: int) -> None:
        """Raises SubscriptionInUse for the number of a replay or of a consumer."""
        self.replays.check_number(number)
        self.consumers.check_number(number)

    def _end_subscription(self, request: int | None, number: int, now: float) -> None:
        if number in self.replays:
            self.replays.end(request, number)
        elif number in self.consumers:
            self.consumers.end(request, number, now)
        else:
            self._unsubscribe(request, number)

    def _on_unsubscribe(self, frame: UnsubscribeFrame, now: float) -> None:
        if frame.subscription in self.replays:
            self.replays.end(frame.request, frame.subscription, frame.after)
        elif frame.after and frame.subscription in self.consumers:
            raise errors.Unsupported("UNSUBSCRIBE with after: a consumer ends at once", option="after")
        elif frame.after:
            assert self.client is not None
            subscription = self.broker.subscribing.find(self.client, frame.subscription)
            if subscription.end_after(frame.after):
                subscription.end()
            if frame.request is not None:
                self.outbox.write(frames.ok(frame.request))
        else:
            self._end_subscription(frame.request, frame.subscription, now)

    def _unsubscribe(self, request: int | None, number: int) -> None:
        assert self.client is not None
        subscription = self.broker.subscribing.unsubscribe(self.client, number)
        if request is not None:
            result = {"delivered": subscription.delivered, "dropped": subscription.dropped}
            self.outbox.write(frames.ok(request, result))
        self.outbox.evicted.pop(number, None)

    def _on_credit(self, frame: CreditFrame) -> None:
        assert self.client is not None
        if frame.subscription in self.replays or frame.subscription in self.consumers:
            raise errors.NoSuchSubscription(frame.subscription)  # not yet, or without credit
        subscription = self.broker.subscribing.find(self.client, frame.subscription)
        try:
            subscription.grant(frame.messages)
        except ValueError as error:
            # The one protocol_error that leaves the connection open (section 6).
            self._refused += 1
            self.outbox.write(frames.error(None, "protocol_error", str(error), {"subscription": frame.subscription}))

    # -- trouble ----------------------------------------------------------------------------------------------------

    def _answer(self, request: int | None, error: errors.FanlightError) -> None:
        """Refuse one request; close the connection if the error is of that kind."""
        code = CODES[type(error)]
        if code.closes or self.client is None:
            self.fail(error, request)
            return
        self.note_refusal(code.name, error)
        self.outbox.write(frames.error(request, code.name, error.text, error.details))

    def fail(self, error: errors.FanlightError, request: int | None = None) -> None:
        """Send the peer the error and close."""
        if self.state is ConnectionState.CLOSED:
            return
        code = CODES[type(error)]
        self.note_failure(code.name, error.text)
        self.outbox.write(frames.error(request, code.name, error.text, error.details))
        self.say_goodbye(code.name, error.text)


def request_of(values: list[Any]) -> int | None:
    """The request number for an answer to this frame, if its type has one and it is valid."""
    if values[0] in REQUESTS and len(values) > 1:
        request = values[1]
        if isinstance(request, int) and not isinstance(request, bool) and 0 <= request <= U32_MAX:
            return request
    return None
