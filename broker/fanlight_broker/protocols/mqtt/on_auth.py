"""Enhanced authentication (MQTT 5, 4.12): AUTH packets between a client and a method, the broker's or a plug-in's.

    CONNECT method, data --> step --> AUTH 0x18 --> step --> ... --> CONNACK
    AUTH 0x19, data      --> step --> AUTH 0x18 --> step --> ... --> AUTH 0x00      while connected

A step of a plug-in is a call. Those of the broker's methods (`ports.LoginExchange`) may take time: the connection hands
its `pending` exchange to the transport, and reads nothing until the outcome is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, cast

from fanlight_broker.core import ports
from fanlight_broker.core.identity import Identity
from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.options import AuthenticationMethod, Exchange
from fanlight_broker.protocols.mqtt.packets import Auth, ConnAck, Connect
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode

PLUGGED_IN: Final = "plug-in"  # the credential of a client that a plug-in has let in


class AuthenticationExchange:
    """The method of one connection, and the exchange that is under way, if any."""

    def __init__(
        self, name: str, first: Exchange | ports.LoginExchange,
        again: Callable[[], Exchange | ports.LoginExchange | None], *, plugged_in: bool,
    ) -> None:
        self.name = name
        self._plugged_in = plugged_in
        self.last_data: bytes | None = None
        self._again = again
        self._exchange: Exchange | ports.LoginExchange | None = first
        self._identity: Identity | None = None

    @classmethod
    def begin(
        cls, name: str, packet: Connect, methods: Mapping[str, AuthenticationMethod], transport: ports.Transport
    ) -> "AuthenticationExchange":
        """Raises ProtocolError for a method that there is not [MQTT-4.12.0-1]."""
        again: Callable[[], Exchange | ports.LoginExchange | None]
        if name in methods:
            again = partial(methods[name], packet.user_name, transport.address)
        else:
            again = partial(transport.exchange, name, packet.user_name)
        first = again()
        if first is None:
            raise ProtocolError(
                f"CONNECT: authentication method {name[:60]!r} is not known here",
                ReasonCode.BAD_AUTHENTICATION_METHOD,
            )
        return cls(name, first, again, plugged_in=name in methods)

    def check(self, packet: Auth, *, again: bool) -> None:
        """Is this AUTH one that may come now? Raises ProtocolError."""
        if packet.properties.authentication_method != self.name:  # [MQTT-4.12.0-5]
            raise ProtocolError(
                "AUTH: another authentication method than CONNECT had", ReasonCode.BAD_AUTHENTICATION_METHOD
            )
        if packet.reason_code is ReasonCode.RE_AUTHENTICATE:
            if not again or self._exchange is not None:
                raise ProtocolError("AUTH: re-authentication while an authentication is under way")
            self._exchange = self._again()
            if self._exchange is None:  # a reload has taken the method away
                raise ProtocolError(
                    "AUTH: this authentication method is not offered any more", ReasonCode.BAD_AUTHENTICATION_METHOD
                )
        elif self._exchange is None:
            raise ProtocolError("AUTH: there is no authentication under way to continue")

    @property
    def pending(self) -> ports.LoginExchange | None:
        """The exchange under way, if the transport has to make its steps."""
        return None if self._plugged_in else cast(ports.LoginExchange, self._exchange)

    def step(self, data: bytes | None) -> tuple[bytes | None, Identity | None]:
        """A step of a plug-in: data for the client, and who it is when it is done. Raises AuthenticationFailed."""
        exchange = cast(Exchange, self._exchange)
        answer, user = exchange.step(data)
        return answer, Identity(user, verified=True, credential=PLUGGED_IN) if user is not None else None

    def done(self, identity: Identity) -> None:
        """The exchange is over. Raises ProtocolError if it shows another client than the one before."""
        before, self._identity, self._exchange = self._identity, identity, None
        if before is not None and _rights(before) != _rights(identity):
            raise ProtocolError(
                "AUTH: re-authentication as another user, or with other rights; connect anew", ReasonCode.NOT_AUTHORIZED
            )

    def packet(self, reason: ReasonCode, data: bytes | None) -> Auth:
        return Auth(reason, Properties(authentication_method=self.name, authentication_data=data))

    def completed(self, connack: ConnAck) -> ConnAck:
        """The CONNACK with the method's last word [MQTT-4.12.0-4]."""
        return replace(connack, properties=replace(connack.properties, authentication_data=self.last_data))


def _rights(identity: Identity) -> tuple[object, ...]:
    return identity.user, identity.groups, identity.limits, identity.permissions
