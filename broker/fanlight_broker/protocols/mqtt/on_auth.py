"""Enhanced authentication (MQTT 5, 4.12): AUTH packets between a client and a method that is plugged in.

    CONNECT method, data --> step --> AUTH 0x18 --> step --> ... --> CONNACK
    AUTH 0x19, data      --> step --> AUTH 0x18 --> step --> ... --> AUTH 0x00      while connected
"""

from collections.abc import Mapping
from dataclasses import replace

from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.options import AuthenticationMethod, Exchange
from fanlight_broker.protocols.mqtt.packets import Auth, ConnAck, Connect
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode


class AuthenticationExchange:
    """The method of one connection, and the exchange that is under way, if any."""

    def __init__(self, name: str, method: AuthenticationMethod, user: str | None, address: str) -> None:
        self.name = name
        self.last_data: bytes | None = None
        self._method = method
        self._user = user
        self._address = address
        self._exchange: Exchange | None = method(user, address)

    @classmethod
    def begin(
        cls, name: str, packet: Connect, methods: Mapping[str, AuthenticationMethod], address: str
    ) -> "AuthenticationExchange":
        """Raises ProtocolError for a method that there is not [MQTT-4.12.0-1]."""
        if name not in methods:
            raise ProtocolError(
                f"CONNECT: authentication method {name[:60]!r} is not known here",
                ReasonCode.BAD_AUTHENTICATION_METHOD,
            )
        return cls(name, methods[name], packet.user_name, address)

    def check(self, packet: Auth, *, again: bool) -> None:
        """Is this AUTH one that may come now? Raises ProtocolError."""
        if packet.properties.authentication_method != self.name:  # [MQTT-4.12.0-5]
            raise ProtocolError(
                "AUTH: another authentication method than CONNECT had", ReasonCode.BAD_AUTHENTICATION_METHOD
            )
        if packet.reason_code is ReasonCode.RE_AUTHENTICATE:
            if not again or self._exchange is not None:
                raise ProtocolError("AUTH: re-authentication while an authentication is under way")
            self._exchange = self._method(self._user, self._address)
        elif self._exchange is None:
            raise ProtocolError("AUTH: there is no authentication under way to continue")

    def step(self, data: bytes | None) -> tuple[bytes | None, str | None]:
        """Data for the client, and the user when it is done. Raises AuthenticationFailed."""
        assert self._exchange is not None
        answer, user = self._exchange.step(data)
        if user is not None:
            self._exchange = None
        return answer, user

    def packet(self, reason: ReasonCode, data: bytes | None) -> Auth:
        return Auth(reason, Properties(authentication_method=self.name, authentication_data=data))

    def completed(self, connack: ConnAck) -> ConnAck:
        """The CONNACK with the method's last word [MQTT-4.12.0-4]."""
        return replace(connack, properties=replace(connack.properties, authentication_data=self.last_data))
