"""This broker as a bridge sees it: a connection over a socket pair, which is served as any client's is.

So a bridge has a session, a user with permissions, a share and quotas, and appears in the views. Only bridges come in
here: who they are needs no check.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import partial

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.ports import LoginExchange
from fanlight_broker.core.subscriber import Session
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.traffic import Traffic
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.wire.inbox import ReceiveBuffer

LISTENER = "bridge"


class BridgeUsers:
    """The authenticator of bridges (`ports.Authenticator`): it knows the users of those that are in the file."""

    def __init__(self) -> None:
        self.groups: dict[str, frozenset[str]] = {}  # by user

    def identify(self, user: str | None, password: str | None, **_: str) -> Identity | None:
        groups = self.groups.get(user or "")
        return None if groups is None else Identity(user or "", verified=True, credential=LISTENER, groups=groups)

    async def authenticate(self, user: str | None, password: str | None, address: str, **_: object) -> Identity:
        raise AuthenticationFailed("this is no bridge of the file")

    def exchange(self, mechanism: str, user: str | None, address: str, **_: str) -> LoginExchange | None:
        return None

    def offers(self) -> frozenset[str]:
        return frozenset()

    def stands(self, identity: Identity) -> bool:
        return identity.user in self.groups


class NearSide:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.users = BridgeUsers()
        self._traffic = Traffic(LISTENER, tls=False, websocket=False)
        self._listener = Listener(
            LISTENER, broker, partial(MqttConnection, MqttOptions(own_clients=True), Counts()), self.users,
            clock=monotonic, shared=ReceiveBuffer(), direct=False,
        )

    async def connect(self, factory: Callable[[], asyncio.Protocol]) -> "NearConnection":
        """A connection whose other end is this protocol's. Raises OSError."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        served = Connection(self._listener, self._traffic)
        try:
            await loop.create_unix_connection(lambda: served, sock=theirs)
            await loop.create_unix_connection(factory, sock=ours)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return NearConnection(served)

    async def stop(self) -> None:
        await self._listener.stop()


class NearConnection:
    """The broker's side of a bridge's connection."""

    def __init__(self, served: Connection) -> None:
        self._served = served

    @property
    def session(self) -> Session | None:
        """Once it is through its handshake."""
        client = self._served.protocol.client
        return None if client is None else client.subscriber.session
