"""One AMQP connection (1.4): open, heartbeats, close; its channels' frames go to them. handshake.py is its beginning.

    AMQP 0 0 9 1 --> start --> start-ok --> (login) --> tune --> tune-ok, open --> open-ok --> channels --> close

The loop over the input, and the life cycle of all connections, are in core/connection.py; state.py has what is legal.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import inf
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.core import errors
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import CLOSED, CONNECTED
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp.channel import AmqpChannel
from fanlight_broker.protocols.amqp.delivery_times import READINGS
from fanlight_broker.protocols.amqp.errors import AmqpError, amqp_error, frame_error, reply_text
from fanlight_broker.protocols.amqp.fields import SYNTAX, TOPIC_EXCHANGE, exchange_topic
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.frames import HEARTBEAT, PROTOCOL_HEADER, FrameType, check_heartbeat
from fanlight_broker.protocols.amqp.handshake import HANDSHAKE, NO_METHOD, AmqpHandshake
from fanlight_broker.protocols.amqp.methods import IDS, AnyMethod, decode_method, method_frame, name_of
from fanlight_broker.protocols.amqp.options import AmqpCounts, AmqpOptions
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.state import HEADER, LEGAL, ON_CHANNELS, RUNNING, SECURE, START
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue, Vhost, Vhosts
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.lane import TOO_LARGE

SILENT_INTERVALS: Final = 2  # of heartbeats, after which a peer is gone (4.2.7)
BUSY: Final = 1_024  # bytes unsent: a client that reads so late gets no heartbeats or notices on top
LOOK_SECONDS: Final = 60  # between two looks for deliveries that are not acknowledged in time, at the most
PUBLISH_IDS: Final = (60, 40)
COMMIT_IDS: Final = (90, 20)
OPEN_OK: Final = method_frame(0, first.ConnectionOpenOk())
# Members of an enumeration, which are looked up slowly.
METHOD_TYPE: Final = int(FrameType.METHOD)
HEARTBEAT_TYPE: Final = int(FrameType.HEARTBEAT)
CODES_OF_REASONS: Final = {
    "idle_timeout": ReplyCode.CONNECTION_FORCED, "not_permitted": ReplyCode.ACCESS_REFUSED,
    "internal_error": ReplyCode.INTERNAL_ERROR,
}  # fmt: skip


@lru_cache(maxsize=256)  # clients number their channels from 1
def open_ok(channel: int) -> bytes:
    return method_frame(channel, first.ChannelOpenOk())


class AmqpConnection(AmqpHandshake):
    """The protocol side of one connection."""

    log = event_log.get("amqp")
    __slots__ = (
        "_beaten_at", "_full_since", "_looked_at", "_quiet_until", "_said_blocked", "_vhost", "_vhosts", "counts",
        "done", "gave_up",
    )  # fmt: skip

    def __init__(
        self, options: AmqpOptions, counts: AmqpCounts, vhosts: Vhosts, broker: Broker, transport: Transport,
        shared: ReceiveBuffer, now: float,
    ) -> None:
        super().__init__(options, broker, transport, shared, now)
        self.counts = self.lane.counts = counts
        self.gave_up = False  # the message at hand waited for a queue for too long
        self.done = False  # the frame at hand was passed before an error was raised
        self._vhosts = vhosts
        self._vhost: Vhost | None = None
        self._beaten_at = now
        self._full_since: float | None = None
        self._said_blocked = False
        self._looked_at = now  # deliveries that are not acknowledged
        self._quiet_until = now  # `idle` has nothing to do before

    @property
    def vhost(self) -> Vhost:
        assert self._vhost is not None
        return self._vhost

    @property
    def core_client(self) -> Client:
        assert self.client is not None
        return self.client

    @property
    def subscriber(self) -> Subscriber:
        return self.core_client.subscriber

    @property
    def restricted(self) -> bool:
        """May there be something that its client may not do?"""
        return self.broker.enforcement.badge_of(self.subscriber) is not None

    # -- answers ----------------------------------------------------------------------------------------------------

    def in_order(self, write: Callable[[], None], *, stored: bool = False) -> None:
        """Call `write` behind the answers that wait; stored: and when all that has changed until now is stored.

        That includes what consumers have acknowledged, which no answer of its own waits for. A store that refuses is
        not waited for: the client would get no answer until its disk is mended.
        """
        if stored and not self.broker.position.refusing:
            self.broker.queues.confirm(write, self.lane)
        elif self.lane.pending_acks:
            self.broker.acknowledgements.commit(write, self.lane, recorded=False)
        else:
            write()

    def answers_at_once(self, *, stored: bool) -> bool:
        """Would `in_order` call what it is given at once?"""
        return not (self.lane.pending_acks or (stored and not self.broker.position.refusing))

    # -- input ------------------------------------------------------------------------------------------------------

    def recognises(self, first_bytes: bytes) -> bool:
        return first_bytes.startswith(PROTOCOL_HEADER[:4])

    def handle(self, now: float) -> None:
        lane = self.lane
        if not lane.greeted:
            self.on_header(lane.frame())
            return
        number, payload = lane.channel, lane.frame()
        self.at = NO_METHOD
        if lane.kind == HEARTBEAT_TYPE:
            try:
                check_heartbeat(number, len(payload))
            except AmqpError as error:
                if number:
                    raise AmqpError(ReplyCode.UNEXPECTED_FRAME, error.text) from error
                raise
        method = decode_method(payload)
        kind = type(method)
        self.at = IDS[kind]
        if number:
            self._on_channel_method(number, kind, method, now)
            return
        if kind not in LEGAL[self.phase]:
            raise AmqpError(ReplyCode.COMMAND_INVALID, f"{name_of(kind)} is not allowed now on channel 0")
        HANDLERS[kind](self, method, now)

    def go_through(self, steps: Iterator[None]) -> None:
        """Do all of this before the next frame, in as many turns as it takes."""
        self.at_work = steps

    def continue_work(self) -> bool:
        for _ in self.at_work or ():
            if self.broker.turns.over():
                return True
        self.at_work = None
        return False

    def publish(self, now: float) -> bool:
        """A content frame, or a tx.commit."""
        if self.lane.kind == METHOD_TYPE:
            return self._commit(now)
        number, self.at, self.done = self.lane.channel, PUBLISH_IDS, False
        channel = self._channels.get(number)
        if channel is not None and not channel.is_open:
            self.lane.done()
            return True
        try:
            if channel is None:
                if self.phase is not RUNNING:
                    raise AmqpError(ReplyCode.UNEXPECTED_FRAME, "content before connection.open")
                code = ReplyCode.UNEXPECTED_FRAME if number == 0 else ReplyCode.CHANNEL_ERROR
                raise AmqpError(code, f"content on channel {number}, which is not open")
            taken = channel.publisher.take(now)
        except errors.FanlightError as error:
            if not self.done:
                self.lane.done()
            self._failed(channel, error, now)
            return True
        if taken:
            self._full_since, self.gave_up = None, False
            if self.broker.position.refusing:
                self._say_blocked(True, "the store has no room or fails")
        return taken

    def _commit(self, now: float) -> bool:
        """A tx.commit, which stays at hand as long as it is worked on."""
        channel = self._channels.get(self.lane.channel)
        if channel is None or not channel.commits:
            self.handle(now)
            return True
        self.at = COMMIT_IDS
        try:
            return channel.commit(now)
        except errors.FanlightError as error:
            self.lane.done()
            self._failed(channel, error, now)
            return True

    def wait_for_room(self, now: float) -> None:
        if self._full_since is None:
            self._full_since = self._quiet_until = now
        self.lane.hold_back(None)

    def reject(self, event: int) -> None:
        self.at = NO_METHOD
        if event == TOO_LARGE:
            raise frame_error(f"a frame of {self.lane.frame_size} bytes; at most {self.lane.frame_max}")
        raise frame_error(self.lane.fault)

    # -- open, close ------------------------------------------------------------------------------------------------

    def _on_open(self, method: first.ConnectionOpen, now: float) -> None:
        name = method.virtual_host
        try:
            self._enter_vhost(name, now)
        except (errors.NotPermitted, errors.LimitExceeded) as error:
            why = f" for user '{self.login}'" if isinstance(error, errors.NotPermitted) else f": {error.text}"
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"access to vhost '{name}' refused{why}") from error
        self._vhost = self._vhosts.of(self.broker)
        self.lane.sites, self.lane.body_max = self._vhost.sites, self.options.message_bytes_max
        self.lane.login = self.login.encode()
        self.state = CONNECTED
        self.phase = RUNNING
        self.admit()
        self.outbox.write(OPEN_OK)

    def _enter_vhost(self, name: str, now: float) -> None:
        """Become a client of the namespace that is this vhost. Raises NotPermitted, LimitExceeded, AmqpError 530."""
        identity = self._identity
        origin = self.enter(identity, self.protocol)
        home = self._vhosts.home(name, self.broker)
        if home is None:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"vhost {name} not found")
        if home is not self.broker:
            self.move(home)
            origin = origin._replace(namespace=home.name, chosen=True)
        agent = " ".join(filter(None, (self.property_of("product"), self.property_of("version"))))
        self._properties = {}
        self.client = home.clients.connect(
            self.outbox, self, now,
            name=None, user=identity.user, verified=identity.verified, label=identity.label, agent=agent,
            address=self.transport.address, port=self.transport.port, protocol=self.protocol, format=FORMAT,
            origin=origin, limits=identity.limits,
        )

    def _on_close(self, method: first.ConnectionClose, now: float) -> None:
        self.send_first(first.ConnectionCloseOk())
        self.leave(f"the client closed it: {method.reply_code} {method.reply_text[:60]!r}")

    def _on_close_ok(self, method: first.ConnectionCloseOk, now: float) -> None:
        raise AmqpError(ReplyCode.COMMAND_INVALID, "connection.close-ok without a close")

    # -- channels ---------------------------------------------------------------------------------------------------

    def _on_channel_method(self, number: int, kind: type[AnyMethod], method: AnyMethod, now: float) -> None:
        if kind not in ON_CHANNELS:
            raise AmqpError(ReplyCode.COMMAND_INVALID, f"{name_of(kind)} is not for clients, or not for a channel")
        if self._vhost is None:
            raise AmqpError(ReplyCode.CHANNEL_ERROR, f"{name_of(kind)} before connection.open")
        channel = self._channels.get(number)
        if kind is first.ChannelOpen:
            self._open(number, channel)
            return
        if channel is None:
            raise AmqpError(ReplyCode.CHANNEL_ERROR, f"{name_of(kind)} on channel {number}, which is not open")
        if kind is first.ChannelClose:
            self._close(channel, now)
            return
        if kind is first.ChannelCloseOk:
            if channel.is_open:
                raise AmqpError(ReplyCode.CHANNEL_ERROR, "channel.close-ok without a close")
            self._forget(channel)
            return
        if not channel.is_open:
            return
        try:
            channel.act(method, now)
        except errors.FanlightError as error:
            self._failed(channel, error, now)

    def _open(self, number: int, channel: AmqpChannel | None) -> None:
        if channel is not None:
            raise AmqpError(ReplyCode.CHANNEL_ERROR, f"channel {number} is open already")
        if len(self._channels) >= self.channel_max:
            raise AmqpError(
                ReplyCode.NOT_ALLOWED, f"number of channels opened ({len(self._channels)}) has reached the negotiated "
                f"channel_max ({self.channel_max})",
            )
        self._channels[number] = AmqpChannel(self, number)
        hide(self._channels)
        self.counts.channels += 1
        self.counts.channels_opened += 1
        self.outbox.write(open_ok(number))

    def _close(self, channel: AmqpChannel, now: float) -> None:
        """By its client."""
        channel.end(now)
        self._forget(channel)
        self.outbox.write(method_frame(channel.number, first.ChannelCloseOk()))

    def _forget(self, channel: AmqpChannel) -> None:
        del self._channels[channel.number]
        channel.come_apart()
        self.counts.channels -= 1

    def _failed(self, channel: AmqpChannel | None, error: errors.FanlightError, now: float) -> None:
        """Close the channel. Raises the error again if it closes the connection."""
        found = amqp_error(error)
        if channel is None or found.closes_all:
            try:
                raise found from (None if found is error else error)
            finally:
                del found, error  # else the exception and this frame, which it refers to, would keep each other
        self.note_refusal(found.code.name.lower(), found)
        self.counts.channel_errors += 1
        channel.end(now)
        self.outbox.write(method_frame(
            channel.number, first.ChannelClose(found.code, found.reply_text, *self.at)
        ))

    # -- life cycle -------------------------------------------------------------------------------------------------

    def fail(self, error: errors.FanlightError) -> None:
        if self.state is CLOSED:
            return
        found = amqp_error(error)
        self.note_failure(found.code.name, found.text)
        begins = self.phase in (START, SECURE)
        refused = begins and isinstance(error, errors.AuthenticationFailed | errors.NotPermitted)
        if self.phase is not HEADER and (self._wants_close or not refused):
            text = found.reply_text
            if refused:
                text = reply_text(ReplyCode.ACCESS_REFUSED, "Login was refused")
            self.send_first(first.ConnectionClose(found.code, text, *self.at))
        self.leave(f"closed by the broker: {found.code.name.lower()}")

    def end(self) -> None:
        now = self.transport.now()
        for channel in self._channels.values():
            channel.consumers.pause_all()
        for channel in [*self._channels.values()]:
            channel.end(now)
            self._forget(channel)
        if self._vhost is not None:
            for queue in self._vhost.owned(self):
                self.broker.queues.end(queue.work, "connection_ended")
        self._properties, self.at_work, self._exchange = {}, None, None

    def recheck(self) -> Iterator[None]:
        """An exclusive queue is its client's, as a subscription is: it ends if a binding is not permitted any more."""
        for queue in self._vhost.owned(self) if self._vhost is not None else ():
            yield from self._recheck_bindings(queue)

    def _recheck_bindings(self, queue: DeclaredQueue) -> Iterator[None]:
        name, vhost = queue.work.name, self.vhost
        for binding in vhost.exchanges.bindings_to(name):
            yield
            if vhost.find(name) is not queue:
                return
            if binding.source != TOPIC_EXCHANGE and not self._may_read(exchange_topic(binding.source, binding.key)):
                self.broker.queues.end(queue.work, "not_permitted")  # of amq.topic its consumers are asked

    def _may_read(self, filter: bytes) -> bool:
        try:
            self.broker.enforcement.check_filter(
                self.subscriber, Action.SUBSCRIBE, filter, SYNTAXES[SYNTAX], whole=True
            )
        except NotPermitted:
            return False
        return True

    def farewell(self, reason: str, text: str) -> bytes | None:
        if self.phase is HEADER:
            return None
        code = CODES_OF_REASONS.get(reason, ReplyCode.CONNECTION_FORCED)
        return method_frame(0, first.ConnectionClose(code, reply_text(code, text)))

    def idle(self, now: float) -> None:
        if now < self._quiet_until:  # nearly all, nearly always
            return
        if self._said_blocked and not self.blocked and not self.broker.position.refusing:
            self._say_blocked(False)
        timeout = self.options.consumer_timeout_seconds
        look = min(timeout / READINGS, LOOK_SECONDS)
        if timeout and now - self._looked_at >= look:
            self._looked_at = now
            self._close_overdue(timeout, now)
        if self._full_since is not None and self.blocked and self.state is CONNECTED:
            self.gave_up = now - self._full_since >= self.broker.limits.unkept_seconds_max
            self.unblock(now)
            return
        if self.heartbeat and self.state is CONNECTED and self.phase is RUNNING \
                and now - self._beaten_at >= self.heartbeat / 2:
            self._beaten_at = now
            if self.outbox.size < BUSY:
                self.outbox.write(HEARTBEAT)
        super().idle(now)
        if not (self._said_blocked or self._full_since is not None) and self.phase is RUNNING:
            due = self._looked_at + look if timeout else inf
            if self.heartbeat:
                silent = now - self.lane.silence(now) + SILENT_INTERVALS * self.heartbeat
                due = min(due, self._beaten_at + self.heartbeat / 2, silent)
            self._quiet_until = due

    def check_silence(self, silence: float, now: float) -> None:
        if self.heartbeat and silence >= SILENT_INTERVALS * self.heartbeat:
            self.leave(f"no frame for {silence:.1f} s: missed heartbeats")

    def refill(self, now: float) -> None:
        for channel in [*self._channels.values()]:
            channel.consumers.drained(now)

    def _close_overdue(self, timeout: float, now: float) -> None:
        for channel in [*self._channels.values()]:
            if channel.is_open and channel.consumers.overdue(timeout, now):
                self.at = NO_METHOD
                self._failed(channel, AmqpError(
                    ReplyCode.PRECONDITION_FAILED,
                    f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
                    f"{1_000 * timeout:.0f} ms. This timeout value can be configured, see consumers doc guide to learn "
                    "more",
                ), now)
                self.broker.finish()

    def notify_held(self, held: bool, seconds: float) -> None:
        why = "a consumer is slow, the store is full, or too many requests were refused"
        if self.outbox.pace is not None and self.lane.blocker in [each.gate for each in self.outbox.pace.buckets]:
            why = "published faster than its quota allows"
        self._say_blocked(held or self.broker.position.refusing, why)

    def _say_blocked(self, blocked: bool, why: str = "") -> None:
        """connection.blocked or unblocked, once, to clients that have announced it."""
        if not self._wants_blocked or self.state is not CONNECTED or blocked == self._said_blocked:
            return
        if blocked and self.outbox.size >= BUSY:
            return
        self._said_blocked = blocked
        self._quiet_until = 0.0
        self.send_first(first.ConnectionBlocked(why) if blocked else first.ConnectionUnblocked())

    def subscription_ended(self, subscription: Subscription, reason: str) -> None:
        """AMQP clients have consumers and no subscriptions of their own."""

    @property
    def things(self) -> tuple[object, ...]:
        return *super().things, self._channels


HANDLERS: Final[dict[type[AnyMethod], Callable[[AmqpConnection, Any, float], None]]] = {
    **HANDSHAKE,
    first.ConnectionOpen: AmqpConnection._on_open,
    first.ConnectionClose: AmqpConnection._on_close,
    first.ConnectionCloseOk: AmqpConnection._on_close_ok,
}
