"""One MQTT connection: acts on a client's packets. Bytes arrive in the inbox and leave through the outbox.

The loop over the input, and the life cycle of all connections, are in core/connection.py. CONNECT is in
on_connect.py, PUBLISH in on_publish.py, SUBSCRIBE in on_subscribe.py, enhanced authentication in on_auth.py.
"""

from functools import partial
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.core import errors
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ConnectionState, ProtocolConnection
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.quota import Quota
from fanlight_broker.core.subscriber import Client, Session, Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.protocols.mqtt import lane, on_connect, on_publish, on_subscribe
from fanlight_broker.protocols.mqtt.aliases import AliasFormat
from fanlight_broker.protocols.mqtt.codec import decode, encode_within, without_problem_information
from fanlight_broker.protocols.mqtt.connect_body import plain_connect
from fanlight_broker.protocols.mqtt.decoding import maximum_packet_size_of
from fanlight_broker.protocols.mqtt.error_codes import GOODBYES, REASON_STRING_MAX, carried, reason_of
from fanlight_broker.protocols.mqtt.errors import PacketError, PacketTooLarge, ProtocolError, UnsupportedProtocol
from fanlight_broker.protocols.mqtt.fixed_header import FIRST_BYTES, PacketType
from fanlight_broker.protocols.mqtt.format import FORMATS
from fanlight_broker.protocols.mqtt.from_client import check_from_client
from fanlight_broker.protocols.mqtt.on_auth import AuthenticationExchange
from fanlight_broker.protocols.mqtt.on_connect import AcceptedConnect
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    PubRec,
    PubRel,
    Subscribe,
    Unsubscribe,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode, return_code
from fanlight_broker.protocols.mqtt.state import LEGAL
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer
from fanlight_broker.wire.lane import TOO_LARGE
from fanlight_broker.wire.message import Message

FIXED_HEADER: Final = 5  # bytes at most
CONNECT: Final = bytes((FIRST_BYTES[PacketType.CONNECT],))
PROTOCOL_NAME: Final = b"\0\4MQTT"
DISCONNECT: Final = FIRST_BYTES[PacketType.DISCONNECT]


class MqttConnection(ProtocolConnection):
    """The protocol side of one connection."""

    protocol: Final = "mqtt"
    log = event_log.get("mqtt")
    lane: lane.MqttLane

    def __init__(
        self, options: MqttOptions, counts: Counts, broker: Broker, transport: Transport, shared: ReceiveBuffer,
        now: float,
    ) -> None:
        outbox, inbox, limits = broker.new_outbox(), Inbox(shared, broker.ledger), broker.limits
        first_max = min(options.connect_bytes_max, limits.frame_bytes_max)  # a stranger gets no big buffer
        inbox.read_max = FIXED_HEADER + first_max
        inbox.stranger(limits.handshake_frame_bytes_max)
        super().__init__(broker, transport, now, lane.MqttLane(
            inbox, outbox, broker.routes, broker.ledger,
            frame_max=first_max, control_max=limits.control_bytes_max,
        ))
        self.options = options
        self.counts = counts
        self.version: Version | None = None  # as in CONNECT
        self.receive_max = limits.unreleased_messages_max
        self.keep_alive = 0  # seconds; 0: none
        self.auth: AuthenticationExchange | None = None
        self._stepping: ConnectionState | None = None  # the state in which its exchange began a step that takes time
        self._accepted: AcceptedConnect | None = None  # CONNECT, until it is answered
        self._accepted_bytes = 0
        self._packet_max: int | None = None  # the client's Maximum Packet Size
        self._problems = True  # its Request Problem Information
        self._unkept: tuple[Message, float] | None = None  # a message that waits for room in a queue, and since when

    @property
    def session(self) -> Session:
        """The session of a connected client."""
        assert self.client is not None
        assert self.client.subscriber.session is not None
        return self.client.subscriber.session

    @property
    def subscriber(self) -> Subscriber:
        return self.session.subscriber

    # -- input -----------------------------------------------------------------------------------------------------

    def recognises(self, first: bytes) -> bool:
        return first.startswith(CONNECT) and first.startswith(PROTOCOL_NAME, 2)  # with a Remaining Length of one byte

    def handle(self, now: float) -> None:
        self._handle(self.lane.first_byte, self.lane.frame(), now)

    def publish(self, now: float) -> bool:
        return on_publish.publish(self, now)

    def reject(self, event: int) -> None:
        if event == TOO_LARGE:
            raise PacketTooLarge(self.lane.frame_size, self.lane.frame_max)
        raise PacketError(self.lane.fault, ReasonCode(self.lane.fault_reason))

    def end_of_input(self, now: float) -> bool:
        if self.state is not ConnectionState.CONNECTED:
            return False
        # Acknowledgements make room for retained messages that wait; Python sends those.
        return not (self.session.cursors and self.broker.sessions.advance(self.session, now))

    def wait_for_room(self, now: float) -> None:
        self._unkept = self.lane.message.keep(), now
        self.lane.hold_back(None)
        self.counts.unkept += 1

    def _look_for_room(self, message: Message, since: float, now: float) -> None:
        limit = self.broker.limits.unkept_seconds_max
        route = self.broker.router.route(message.topic, "mqtt")
        wanted = self.broker.router.for_message(route, message, self.subscriber)
        if wanted.has_room(self.broker.ledger, self.outbox, message):
            self._unkept = None
            self.unblock(now)
        elif now - since >= limit:
            self.fail(errors.LimitExceeded(
                f"PUBLISH: no queue has room for a message to {message.topic!r}", "unkept_seconds_max", limit
            ))

    def continue_work(self) -> bool:
        """Process a packet that takes several turns, for one turn. True if more of it is left."""
        if self.at_work is None:
            return False
        began = self.broker.turns.now(0.0)
        if next(self.at_work, self) is self:
            self.at_work = None
        self.note_work(began)
        return self.at_work is not None

    # -- life cycle ------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Detach the session at once, and not when the peer closes, which may take `linger_seconds_max`. Otherwise it
        would get messages behind DISCONNECT [MQTT-3.14.4-1], those of its queue groups among them.
        """
        if self.client is not None:
            self.broker.sessions.leave(self.client, self.transport.now(), will=True)  # no effect if it has left already
        self._accepted = None
        if self._accepted_bytes:
            self._keep_connect(0)

    def lost(self, reason: str) -> list[Client]:
        self.lane.forget_aliases()
        if self.client is not None and isinstance(self.client.format, AliasFormat):
            self.client.format.forget()
        return super().lost(reason)

    def idle(self, now: float) -> None:
        if self._unkept is not None and self.state is ConnectionState.CONNECTED:
            self._look_for_room(*self._unkept, now)
        else:
            super().idle(now)

    def check_silence(self, silence: float, now: float) -> None:
        """Close the connection of a client that has been silent for too long [MQTT-3.1.2-22]."""
        if self.keep_alive and silence >= 1.5 * self.keep_alive:
            self.say_goodbye("idle_timeout", f"no packet for {silence:.1f} s")

    def refill(self, now: float) -> None:
        if not self.blocked:  # else `unblock` does
            self.broker.sessions.advance(self.session, now)

    def use_quota(self, quota: Quota) -> None:
        super().use_quota(quota)
        if self.client is not None and self.lane.share is not None:
            self.lane.share = self.client.subscriber.share  # another, if other holders of quotas count what it uses

    def subscription_ended(self, subscription: Subscription, reason: str) -> None:
        """MQTT has no packet for that: the client hears of it by the end of its connection."""
        self.say_goodbye("not_permitted", "no permission any more for a subscription, which was ended")

    def notify_held(self, held: bool, seconds: float) -> None:
        pass  # MQTT has no packet for it; /connections shows it

    def farewell(self, reason: str, text: str) -> bytes | None:
        packet = self._farewell(GOODBYES.get(reason, ReasonCode.UNSPECIFIED_ERROR), text)
        return None if packet is None else self._octets(packet)

    def _farewell(self, reason: ReasonCode, text: str) -> Packet | None:
        """The last packet: DISCONNECT, or a refusing CONNACK before that. None: the version has no such packet."""
        if self.client is not None and (not self.waiting or self._stepping is ConnectionState.CONNECTED):
            if self.version is V3:
                return None
            stopping = reason is ReasonCode.SERVER_SHUTTING_DOWN and self.options.server_reference is not None
            if stopping:
                reason = ReasonCode.USE_ANOTHER_SERVER
            reference = self.options.server_reference if stopping else None
            reason = carried(reason, PacketType.DISCONNECT)
            return Disconnect(reason, Properties(reason_string=text[:REASON_STRING_MAX], server_reference=reference))
        if self.version is None:
            return None
        if reason is ReasonCode.SERVER_SHUTTING_DOWN:
            reason = ReasonCode.SERVER_UNAVAILABLE if self.options.server_reference is None \
                else ReasonCode.USE_ANOTHER_SERVER
        if self.version is V3 and return_code(reason) is None:
            return None
        reason = carried(reason, PacketType.CONNACK)
        self.counts.refused[reason] += 1
        return on_connect.refusal(reason, text, self.version, self.options)

    # -- packets ----------------------------------------------------------------------------------------------------

    def _handle(self, first: int, body: bytes, now: float) -> None:
        if self.version is None and first >> 4 == PacketType.CONNECT:
            if first == CONNECT[0] and (plain := plain_connect(body)) is not None:
                self._keep_connect(len(body))
                self._on_connect(on_connect.packet_of(*plain), now)
                return
            self.version = version_of(body)  # a refused CONNECT is answered in its own version
            try:
                packet = decode(first, body, None, self.options.user_properties_max)
            except PacketError:
                self._packet_max = maximum_packet_size_of(body)  # the refusal must fit, too [MQTT-3.1.2-24]
                raise
            self._keep_connect(len(body))
        elif first == DISCONNECT and not body and self.state is ConnectionState.CONNECTED:
            self._on_disconnect(on_connect.GOODBYE, now)
            return
        else:
            if self.state is ConnectionState.CONNECTED:
                self.at_work = on_subscribe.begin(self, first, body)
                if self.at_work is not None:
                    return
            packet = decode(
                first, body, self.version, self.options.user_properties_max,
                filter_suffix=self.options.filter_suffix,
            )
        if type(packet) not in LEGAL[self.state]:
            raise ProtocolError(f"{packet.type.name} is not allowed now")
        check_from_client(packet)
        self._act(packet, now)

    def _act(self, packet: Packet, now: float) -> None:
        match packet:
            case PubAck():
                on_publish.acknowledged(self, packet, now)
            case PubRec():
                on_publish.received(self, packet, now)
            case PubRel():
                on_publish.release(self, packet)
            case PubComp():
                on_publish.completed(self, packet, now)
            case Subscribe():
                self.at_work = on_subscribe.begin_subscribe(self, packet)
            case Unsubscribe():
                self.at_work = on_subscribe.begin_unsubscribe(self, packet)
            case PingReq():
                self.send(PingResp())
            case Disconnect():
                self._on_disconnect(packet, now)
            case Connect():
                self._on_connect(packet, now)
            case Auth():
                self._on_auth(packet, now)
            case _:
                raise AssertionError(f"{packet.type.name} is handled by the lane")

    def _on_connect(self, packet: Connect, now: float) -> None:
        self.version = packet.protocol_version
        self._packet_max = packet.properties.maximum_packet_size
        self._problems = packet.properties.request_problem_information is not False
        self._accepted = on_connect.accept(packet, self.options, self.broker.limits)
        method = packet.properties.authentication_method
        if method is None:
            user, password = on_connect.credentials(packet)
            self.verify(user, password, now, self._accepted.client_id)
            return
        self.auth = AuthenticationExchange.begin(method, packet, self.options.methods, self.transport)
        self.state = ConnectionState.AUTHENTICATING
        self._authenticate(packet.properties.authentication_data, now)

    def _keep_connect(self, octets: int) -> None:
        """Count the CONNECT that is kept until the client is admitted or refused (then 0). Raises LimitExceeded."""
        self.inbox.keep_outside(octets - self._accepted_bytes)
        self._accepted_bytes = octets
        if octets and self.inbox.crowded:
            raise self.no_room()

    def _on_auth(self, packet: Auth, now: float) -> None:
        if self.auth is None:
            raise ProtocolError("AUTH: this connection began without an AuthenticationExchange Method")  # 4.12
        self.auth.check(packet, again=self.state is ConnectionState.CONNECTED)
        self._authenticate(packet.properties.authentication_data, now)

    def _authenticate(self, data: bytes | None, now: float) -> None:
        assert self.auth is not None
        if (exchange := self.auth.pending) is not None:
            self._stepping = self.state
            self.hold_input()
            self.transport.step(exchange, data)
            return
        self._answer_step(*self.auth.step(data), now)

    def stepped(self, answer: bytes | None, identity: Identity | None, now: float) -> None:
        if not self.waiting or self._stepping is None:
            return
        try:
            self.state, self._stepping = self._stepping, None
            self._answer_step(answer, identity, now)
            if self.state is ConnectionState.CONNECTED and self.client is not None:
                self.refill(now)  # the outbox may have drained meanwhile
        except errors.FanlightError as error:
            self.fail(error)
            return
        if not self.waiting and not self.closed:
            self.go_on(now)

    def _answer_step(self, answer: bytes | None, identity: Identity | None, now: float) -> None:
        assert self.auth is not None
        if identity is None:
            self.send(self.auth.packet(ReasonCode.CONTINUE_AUTHENTICATION, answer))
            return
        if self.state is ConnectionState.AUTHENTICATING:
            self.auth.last_data = answer
            self.auth.done(identity)
            self.welcome(identity, now)
            return
        self.auth.done(identity)
        self.send(self.auth.packet(ReasonCode.SUCCESS, answer))

    def welcome(self, identity: Identity, now: float) -> None:
        """The client is authenticated: attach its session, and send CONNACK."""
        accepted, limits = self._accepted, self.broker.limits
        assert accepted is not None
        assert self.version is not None
        origin = self.enter(identity, accepted.protocol)
        broker = self.broker
        wanted = accepted.wanted(identity, self.transport, self.options, broker.ledger.inboxes, origin)
        since = broker.position.appended
        client, session, present = broker.sessions.connect(self.outbox, self, now, wanted)
        self.client = client
        self.keep_alive = accepted.keep_alive
        connack = accepted.connack(present, session.expiry, limits, self.options, client.subscriber.inbox, client.quota)
        if self.auth is not None:
            connack = self.auth.completed(connack)
        self._accepted = None  # a password is kept no longer than needed
        self._keep_connect(0)
        if broker.acknowledgements.stored(since, self.lane) or (present and broker.position.refusing):
            # While nothing can be stored a session that is there goes on: its messages are wanted.
            self._greet(connack, session, now)
            return
        if not self.waiting:
            self.hold_input()
        broker.acknowledgements.commit(partial(self._greet_late, connack, session), self.lane, recorded=False)

    def _greet_late(self, connack: ConnAck, session: Session) -> None:
        """The session is stored now, as it outlives this connection."""
        now = self.transport.now()
        self._greet(connack, session, now)
        if not self.closed:
            self.go_on(now)

    def _greet(self, connack: ConnAck, session: Session, now: float) -> None:
        """Send CONNACK, then what waits for the client."""
        assert self.version is not None
        self.state = ConnectionState.CONNECTED
        self.lane.note_activity(now)
        if self.version is V3:
            self.outbox.write(on_connect.ACCEPTED[connack.session_present])
        elif not self._put(connack):
            self.fail(too_large_for_client(connack, self._packet_max), silently=True)  # [MQTT-3.14.0-1]
            return
        assert self.client is not None
        limits, quota = self.broker.limits, self.client.quota
        self.lane.frame_max = limits.frame_bytes_max
        if self.version is V5:  # CONNACK has said so, and it must not send more [MQTT-3.2.2-15]
            self.lane.frame_max = on_connect.within(limits.frame_bytes_max, quota, "message_bytes")
        self.receive_max = on_connect.within(limits.unreleased_messages_max, quota, "receive_maximum")
        self.lane.check_text = self.options.payload_format_check
        self.lane.user_properties_max = self.options.user_properties_max
        aliases = on_connect.within(self.options.topic_alias_max, quota, "topic_aliases")
        self.lane.begin(FORMATS[self.version], session.window, alias_max=aliases,
                        alias_bytes_max=self.options.topic_alias_bytes_max,
                        maximum_qos=self.options.maximum_qos, session=session, retained=self.broker.retained,
                        unreleased_max=self.receive_max)
        self.admit()
        self.broker.sessions.resume(session, now)

    def _on_disconnect(self, packet: Disconnect, now: float) -> None:
        if self.client is None:  # in the middle of an enhanced authentication
            self.leave("the client said goodbye")
            return
        expiry = packet.properties.session_expiry_interval
        if expiry and not self.session.expiry:  # [MQTT-3.14.2-2]
            raise ProtocolError("DISCONNECT: a Session Expiry Interval where CONNECT had none")
        self.broker.sessions.leave(
            self.client, now,
            will=packet.reason_code is not ReasonCode.NORMAL_DISCONNECTION,  # that one deletes it [MQTT-3.14.4-3]
            expiry=None if expiry is None else on_connect.seconds_of(expiry),
        )
        self.leave(on_connect.goodbye_of(packet.reason_code))

    # -- sending ----------------------------------------------------------------------------------------------------

    def send(self, packet: Packet) -> None:
        """Put a packet into the outbox. Close if it is too large for the client, which would wait for it endlessly."""
        if not self._put(packet) and self.state is not ConnectionState.CLOSED:
            self.fail(too_large_for_client(packet, self._packet_max))

    def answer(self, octets: bytes) -> None:
        """Put a packet into the outbox whose size the client does not limit (see `limits_packets`)."""
        if self.state is not ConnectionState.CLOSED:
            self.outbox.write(octets)

    @property
    def limits_packets(self) -> bool:
        """Has the client a Maximum Packet Size?"""
        return self._packet_max is not None

    def _put(self, packet: Packet) -> bool:
        """False if the packet is larger than the client accepts, and so must not be sent [MQTT-3.1.2-24]."""
        octets = self._octets(packet)
        if octets is not None and self.state is not ConnectionState.CLOSED:
            self.outbox.write(octets)
        return octets is not None

    def _octets(self, packet: Packet) -> bytes | None:
        if not self._problems:
            packet = without_problem_information(packet)
        octets = encode_within(packet, self.version or V5, self._packet_max)
        if octets is None:
            self.counts.oversized += 1
        return octets

    # -- trouble ----------------------------------------------------------------------------------------------------

    def note_error(self, error: errors.FanlightError) -> None:
        """A request, or a part of one, was answered with an error."""
        self.note_refusal(reason_of(error).name, error)

    def fail(self, error: errors.FanlightError, *, silently: bool = False) -> None:
        """Send the peer the error, if its version can express it, and close (4.13)."""
        if self.state is ConnectionState.CLOSED:
            return
        reason = reason_of(error)
        self.note_failure(reason.name, error.text, **_shown(error))
        if isinstance(error, UnsupportedProtocol):
            self.version = error.answer_in
        farewell = None if silently else self._farewell(reason, error.text)
        if self.client is not None or farewell is None:  # else it is counted among the CONNECTs refused
            self.counts.errors[reason] += 1
        if farewell is not None:
            self._put(farewell)
        self.leave(f"closed by the broker: {self.failed}")


def _shown(error: errors.FanlightError) -> dict[str, Any]:
    return {key: value for key, value in error.details.items() if key not in ("code", "text", "client", "address")}


def too_large_for_client(packet: Packet, maximum: int | None) -> PacketError:
    return PacketError(
        f"{packet.type.name}: does not fit into {maximum} bytes, the client's Maximum Packet Size",
        ReasonCode.PACKET_TOO_LARGE,
    )


def version_of(body: bytes) -> Version | None:
    """The version of a CONNECT, whatever else may be wrong with it."""
    for version in Version:
        if body.startswith(b"\0\4MQTT" + bytes((version,))):
            return version
    return None
