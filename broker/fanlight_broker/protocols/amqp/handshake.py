"""The beginning of an AMQP connection (1.4): negotiation, login, tune; and a login's new secret later.

    AMQP 0 0 9 1 --> start --> start-ok ------------------------------> login --> tune --> tune-ok
                                   '-- secure --> secure-ok -- (SCRAM) --^
    update-secret --> login --> permissions and quotas are decided anew --> update-secret-ok

A login by SCRAM-SHA-256 has the server's last message in a second connection.secure, which the client answers with an
empty one: start-ok has no place for it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from fanlight_broker import __version__
from fanlight_broker.core import errors
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import AWAITING, CONNECTED, ProtocolConnection
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.core.ports import LoginExchange, Transport
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp.channel import AmqpChannel
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.frames import FRAME_MIN_SIZE, PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.lane import AmqpLane
from fanlight_broker.protocols.amqp.login import SCRAM, credentials_of, offered
from fanlight_broker.protocols.amqp.methods import AnyMethod, method_frame
from fanlight_broker.protocols.amqp.options import CHANNEL_MAX, FRAME_MAX, AmqpOptions
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.state import HEADER, OPEN, SECURE, START, TUNE
from fanlight_broker.wire.inbox import Inbox, ReceiveBuffer

CAPABILITIES: Final = {
    "publisher_confirms": True, "exchange_exchange_bindings": True, "basic.nack": True,
    "consumer_cancel_notify": True, "connection.blocked": True, "consumer_priorities": True,
    "authentication_failure_close": True, "per_consumer_qos": True, "direct_reply_to": True,
}  # fmt: skip
SERVER_PROPERTIES: Final = {
    "product": "Fanlight", "version": __version__, "platform": "Python", "copyright": "", "information": "",
    "cluster_name": "fanlight", "capabilities": CAPABILITIES,
}  # fmt: skip
NO_METHOD: Final = (0, 0)


class AmqpHandshake(ProtocolConnection):
    """connection.AmqpConnection is the rest."""

    protocol: Final = "amqp"
    lane: AmqpLane
    # Beside the attributes that all protocols have: together they are too many for a dict with shared keys.
    __slots__ = (
        "_channels", "_exchange", "_identity", "_offered", "_properties", "_shown", "_wants_blocked", "_wants_close",
        "at", "channel_max", "frame_max", "heartbeat", "kombu", "login", "options", "phase", "wants_cancels",
    )  # fmt: skip

    def __init__(
        self, options: AmqpOptions, broker: Broker, transport: Transport, shared: ReceiveBuffer, now: float
    ) -> None:
        outbox, inbox, limits = broker.new_outbox(), Inbox(shared, broker.ledger), broker.limits
        inbox.read_max = FRAME_MIN_SIZE
        inbox.stranger(inbox.read_max)
        super().__init__(broker, transport, now, AmqpLane(
            inbox, outbox, broker.routes, broker.ledger, frame_max=FRAME_MIN_SIZE, control_max=limits.control_bytes_max,
        ))
        self.options = options
        self.phase = HEADER
        self.frame_max = FRAME_MIN_SIZE  # bytes of a frame, as both have agreed
        self.channel_max = CHANNEL_MAX  # channels, as both have agreed
        self.heartbeat = 0  # seconds; 0: none
        self.login = ""  # the user of the login, or the name that nothing was checked against
        self.kombu = self.wants_cancels = False  # what the client is, and has announced
        self.at = NO_METHOD  # class and method that an error is about
        self._wants_blocked = self._wants_close = False
        self._offered: tuple[str, ...] = ()  # mechanisms
        self._properties: Mapping[str, Any] = {}
        self._channels: dict[int, AmqpChannel] = {}
        self._exchange: LoginExchange | None = None  # of a login that is under way
        self._shown: Identity | None = None  # who it is, once its exchange has the client's last answer
        self._identity = ANONYMOUS

    def send_first(self, method: AnyMethod) -> None:
        """On channel 0."""
        self.outbox.write(method_frame(0, method))

    def on_header(self, octets: bytes) -> None:
        if octets != PROTOCOL_HEADER:
            self.outbox.write(PROTOCOL_HEADER)
            self.failed = "unsupported_version"
            self.leave("another version of AMQP")
            return
        self.lane.greeted = True
        self.phase = START
        self._offered = offered(bool(self.transport.certified), self.transport.offers())
        self.outbox.write(start_frame(self._offered))

    # -- login ------------------------------------------------------------------------------------------------------

    def on_start_ok(self, method: first.ConnectionStartOk, now: float) -> None:
        self._properties = method.client_properties
        capabilities = self._properties.get("capabilities")
        known = capabilities if isinstance(capabilities, dict) else {}
        self.wants_cancels = known.get("consumer_cancel_notify") is True
        self._wants_blocked = known.get("connection.blocked") is True
        self._wants_close = known.get("authentication_failure_close") is True
        self.kombu = self._properties.get("product") == "py-amqp"
        self.at = NO_METHOD
        if method.mechanism not in self._offered:
            raise errors.AuthenticationFailed(
                f"login with the mechanism {method.mechanism!r}, which was not offered"
            )
        name = self.property_of("connection_name")
        if method.mechanism == SCRAM:
            self.broker.clients.check_names(name, None)
            self._exchange = self.transport.exchange(SCRAM, None)
            if self._exchange is None:  # a reload has taken it away
                raise errors.AuthenticationFailed("SCRAM-SHA-256 is not offered any more")
            self._step(method.response)
            return
        user, password = credentials_of(method.mechanism, method.response)
        self.broker.clients.check_names(name, user)
        self.verify(user, password, now, name)

    def property_of(self, name: str) -> str:
        """What the client says of itself; "": nothing."""
        value = self._properties.get(name)
        return value if isinstance(value, str) else ""

    def _step(self, response: bytes) -> None:
        assert self._exchange is not None
        self.hold_input()
        self.transport.step(self._exchange, response)

    def stepped(self, answer: bytes | None, identity: Identity | None, now: float) -> None:
        if not self.waiting or self._exchange is None:
            return
        self.state = AWAITING
        self._shown = identity
        self.phase = SECURE
        self.send_first(first.ConnectionSecure(answer or b""))
        self.go_on(now)

    def on_secure_ok(self, method: first.ConnectionSecureOk, now: float) -> None:
        self.at = NO_METHOD
        if self._shown is None:
            self._step(method.response)
        elif method.response:
            raise errors.AuthenticationFailed("SCRAM: a message behind the last one")
        else:
            self.welcome(self._shown, now)

    def welcome(self, identity: Identity, now: float) -> None:
        """It is a client of a namespace when connection.open has said of which."""
        if self.client is not None:
            self._renew(identity, now)
            return
        self._exchange = self._shown = None
        self._identity, self.login = identity, identity.user or identity.label
        self.state = AWAITING
        self.phase = TUNE
        self.outbox.write(tune_frame(self.options.heartbeat_seconds))

    # -- a new secret -----------------------------------------------------------------------------------------------

    def on_update_secret(self, method: first.ConnectionUpdateSecret, now: float) -> None:
        """Checked as the password of a login is: the same user, whose token may have other rights and another end."""
        try:
            secret = method.new_secret.decode()
        except UnicodeDecodeError:
            raise refused_secret() from None
        self.verify(self.login or None, secret, now)

    def refuse(self, error: errors.FanlightError) -> None:
        super().refuse(error if self.client is None else refused_secret())

    def _renew(self, identity: Identity, now: float) -> None:
        """Permissions and quotas are decided anew, by what the new secret brings. Raises AmqpError, NotPermitted."""
        before, self._identity = self._identity, identity
        if (identity.user, identity.verified, identity.label) != (before.user, before.verified, before.label):
            raise refused_secret()
        self.state = CONNECTED
        assert self.client is not None
        subscriber, enforcement = self.client.subscriber, self.broker.enforcement
        origin = subscriber.origin._replace(groups=identity.groups, own=identity.permissions)
        user = identity.user if identity.verified else ""
        asker = origin.asker(user, subscriber.name, self.protocol)
        outside = origin._replace(namespace="").asker(user, "", self.protocol)
        own = "" if origin.chosen else self.broker.name  # by the rules: clients of the root choose a namespace
        if enforcement.restricted and self.broker.common.home_of(outside).name != own:
            raise AmqpError(ReplyCode.NOT_ALLOWED, "the new secret is of another namespace; connect anew")
        subscriber.origin = origin
        if enforcement.restricts(origin):
            enforcement.check_connect(asker)
        enforcement.renew(subscriber)
        self.use_badge(enforcement.badge_of(subscriber))
        self.broker.clients.requote(self.client, identity.limits, now)
        for channel in [*self._channels.values()]:
            channel.consumers.recheck(now)
        self.send_first(first.ConnectionUpdateSecretOk())
        self.refill(now)

    # -- tune -------------------------------------------------------------------------------------------------------

    def on_tune_ok(self, method: first.ConnectionTuneOk, now: float) -> None:
        if not 1 <= method.channel_max <= CHANNEL_MAX:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"channel_max {method.channel_max}; 1 to {CHANNEL_MAX}")
        if not FRAME_MIN_SIZE <= method.frame_max <= FRAME_MAX:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"frame_max {method.frame_max}; {FRAME_MIN_SIZE} to {FRAME_MAX}")
        self.channel_max = method.channel_max
        self.frame_max = self.lane.frame_max = method.frame_max
        self.heartbeat = method.heartbeat
        # A message with all of its frames: heads and ends of those of the body, method and content header.
        frames = self.options.message_bytes_max // (self.frame_max - 8) + 2
        self.outbox.frame_max = self.options.message_bytes_max + 8 * frames + FRAME_MAX
        self.phase = OPEN


@lru_cache(maxsize=16)
def start_frame(mechanisms: tuple[str, ...]) -> bytes:
    """It says the same to all who are offered the same."""
    names = " ".join(mechanisms).encode()
    return method_frame(0, first.ConnectionStart(0, 9, SERVER_PROPERTIES, names, b"en_US"))


@lru_cache(maxsize=16)
def tune_frame(heartbeat_seconds: int) -> bytes:
    return method_frame(0, first.ConnectionTune(CHANNEL_MAX, FRAME_MAX, heartbeat_seconds))


def refused_secret() -> AmqpError:
    return AmqpError(ReplyCode.NOT_ALLOWED, "New secret was refused by one of the backends")


HANDSHAKE: Final[dict[type[AnyMethod], Callable[[Any, Any, float], None]]] = {
    first.ConnectionStartOk: AmqpHandshake.on_start_ok,
    first.ConnectionSecureOk: AmqpHandshake.on_secure_ok,
    first.ConnectionTuneOk: AmqpHandshake.on_tune_ok,
    first.ConnectionUpdateSecret: AmqpHandshake.on_update_secret,
}
