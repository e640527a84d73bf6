"""The listeners of a broker, and the ports that the settings open in each: plain, TLS, WebSocket.

    native   native_port                  native_tls_port
    MQTT     mqtt_port                    mqtt_tls_port
             mqtt_websocket_port          mqtt_websocket_tls_port

Part of the composition: like app.py it knows all protocols.
"""

import asyncio
import errno
import importlib
import os
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.config.settings import Tcp
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.ports import Authenticator
from fanlight_broker.net.admission import Admission
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.handshake import HandshakeTurns
from fanlight_broker.net.listener import Listener
from fanlight_broker.net.tls import Tls
from fanlight_broker.net.traffic import families_of
from fanlight_broker.net.websocket import WebSocket
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import COUNTERS as MQTT_COUNTERS
from fanlight_broker.protocols.mqtt.options import AuthenticationMethod, Counts, MqttOptions
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wrong_port import PortGuide

try:
    from fanlight_broker.net.poller import Poller
except ImportError:  # it needs epoll, which only Linux has: see `tcp` in config/settings.py
    Poller = None  # type: ignore[assignment, misc]

log: Final = logs.get("app")


class Listeners:
    """All that clients come in by; the HTTP listener is not among them."""

    def __init__(
        self, settings: Settings, broker: Broker, authenticator: Authenticator, tls: Tls | None, flusher: Flusher
    ) -> None:
        self.settings = settings
        self._poller = new_poller(settings.tcp, flusher)
        self.mqtt_counts = Counts()
        self._tls = tls
        self.port_guide = PortGuide()
        admission, shared = Admission(), ReceiveBuffer()
        self.handshake_turns = HandshakeTurns(broker.turns.later)
        self.native = Listener(
            "native", broker, NativeConnection, authenticator, clock=monotonic, shared=shared, admission=admission,
            poller=self._poller, protocol_check=self.port_guide.check, handshake_turns=self.handshake_turns,
        )
        self.listeners = [self.native]
        if settings.mqtt:
            factory = partial(MqttConnection, mqtt_options(settings), self.mqtt_counts)
            self.mqtt = Listener(
                "mqtt", broker, factory, authenticator, clock=monotonic, shared=shared, admission=admission,
                poller=self._poller, protocol_check=self.port_guide.check, handshake_turns=self.handshake_turns,
            )
            self.listeners.append(self.mqtt)

    @property
    def accepting(self) -> bool:
        return all(listener.accepting for listener in self.listeners)

    async def open(self, credentials: str) -> None:
        """Open every port. Raises CannotListen. `credentials` stands before the host in the URLs to try."""
        settings, tls = self.settings, self._tls
        with opening("native_port", settings.native_host, settings.native_port):
            host, port = await self.native.start(settings.native_host, settings.native_port)
        url = f"fanlight://{credentials}{reachable(host)}:{port}"
        self.listening("native", host, port, try_it=f"fanlight sub --url {url} 'stock.#'")
        if tls is not None:
            host = settings.native_tls_host or settings.native_host
            with opening("native_tls_port", host, settings.native_tls_port):
                host, port = await self.native.start(host, settings.native_tls_port, tls=tls)
            url = f"fanlights://{credentials}{reachable(host)}:{port}"
            self.listening("native_tls", host, port, try_it=f"fanlight sub --url {url} --ca CA.pem 'stock.#'")
        if settings.mqtt:
            await self._open_mqtt("-u USER -P PASSWORD " if credentials else "")

    async def _open_mqtt(self, credentials: str) -> None:
        settings, tls = self.settings, self._tls
        plain, secure = settings.mqtt_host, settings.mqtt_tls_host or settings.mqtt_host
        origins = tuple(each.strip() for each in (settings.mqtt_websocket_origins or "").split(",") if each.strip())
        advice = partial(self.port_guide.missing_upgrade, "mqtt_websocket")
        websocket = WebSocket(subprotocols=("mqtt",), origins=origins, advice=advice)
        with opening("mqtt_port", plain, settings.mqtt_port):
            host, port = await self.mqtt.start(plain, settings.mqtt_port)
        to = f"-h {reachable(host)} -p {port}"
        self.listening("mqtt", host, port, try_it=f"mosquitto_sub {to} {credentials}-t 'stock/#'")
        if tls is not None:
            with opening("mqtt_tls_port", secure, settings.mqtt_tls_port):
                host, port = await self.mqtt.start(secure, settings.mqtt_tls_port, tls=tls)
            to = f"-h {reachable(host)} -p {port} --cafile CA.pem"
            self.listening("mqtt_tls", host, port, try_it=f"mosquitto_sub {to} {credentials}-t 'stock/#'")
        if settings.mqtt_websocket:
            with opening("mqtt_websocket_port", plain, settings.mqtt_websocket_port):
                host, port = await self.mqtt.start(plain, settings.mqtt_websocket_port, upgrade=websocket)
            url = f"ws://{reachable(host)}:{port}"
            self.listening("mqtt_websocket", host, port, try_it=f"mqtt.connect('{url}') in mqtt.js")
            if tls is not None:
                port = settings.mqtt_websocket_tls_port
                with opening("mqtt_websocket_tls_port", secure, port):
                    host, port = await self.mqtt.start(secure, port, tls=tls, upgrade=websocket)
                url = f"wss://{reachable(host)}:{port}"
                self.listening("mqtt_websocket_tls", host, port, try_it=f"mqtt.connect('{url}') in mqtt.js")

    def recheck(self) -> None:
        """End the connections that would not be let in any more."""
        for listener in self.listeners:
            listener.recheck()

    def listening(self, listener: str, host: str, port: int, try_it: str) -> None:
        """A port is open: write it to the log, and advise clients that connect to the wrong port."""
        self.port_guide.opened(listener, port)
        log.info("listening", listener=listener, host=host, port=port, try_it=try_it)

    async def drain(self, seconds: float, text: str) -> int:
        """Say goodbye to all, give them `seconds` to read. Returns how many did not."""
        return sum(await asyncio.gather(*(listener.drain(seconds, text) for listener in self.listeners)))

    async def stop(self) -> None:
        for listener in self.listeners:
            await listener.stop()
        if self._poller is not None:
            self._poller.close()

    def counters(self) -> Mapping[str, int]:
        """Of all listeners together."""
        found: Counter[str] = Counter()
        for listener in self.listeners:
            found.update(listener.counters())
        return found

    def metrics(self) -> list[MetricSource]:
        """What a protocol counts for itself, and what is counted for each protocol or listener."""
        found = [MetricSource({}, families=lambda: families_of(self.listeners))]
        if self.settings.mqtt:
            found.append(MetricSource(MQTT_COUNTERS, self.mqtt_counts.counters, reasons=self.mqtt_counts.reasons))
        return found


def new_poller(tcp: Tcp, flusher: Flusher) -> Poller | None:
    """The poller, if the settings want it and it is there. Raises PluginError if it must be and is not."""
    if Poller is None and tcp is Tcp.EPOLL:
        raise PluginError("tcp: epoll, which only Linux has; set tcp to auto or uvloop")
    if Poller is None or tcp is Tcp.UVLOOP:
        return None
    return Poller(asyncio.get_running_loop(), flusher)


class PluginError(ValueError):
    """A setting names a plug-in that cannot be imported."""


class CannotListen(Exception):
    """A port cannot be opened: the message says which setting names it, why not, and what to do."""


@contextmanager
def opening(setting: str, host: str, port: int) -> Iterator[None]:
    """Around what opens a port. Raises CannotListen."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "Is another broker running? Choose another port, or stop the other"
        else:
            advice = "Choose an address of this machine, and a port above 1023 unless you are root"
        # The numbers of gaierror are its own; asyncio puts a text of its own where a bind's reason should be.
        own = isinstance(error, socket.gaierror) or not error.errno
        reason = (error.strerror or str(error)) if own or error.errno is None else os.strerror(error.errno)
        raise CannotListen(f"cannot listen on {host}:{port} ({setting}): {reason}. {advice}") from error


def mqtt_options(settings: Settings) -> MqttOptions:
    """Raises PluginError."""
    return MqttOptions(
        methods=methods_of(settings.mqtt_authentication_methods or ""),
        keep_alive_max=settings.mqtt_keep_alive_max, topic_alias_max=settings.mqtt_topic_alias_max,
        topic_alias_bytes_max=settings.mqtt_topic_alias_bytes_max,
        connect_bytes_max=settings.mqtt_connect_bytes_max,
        user_properties_max=settings.mqtt_user_properties_max, maximum_qos=settings.mqtt_maximum_qos,
        server_reference=settings.mqtt_server_reference, payload_format_check=settings.mqtt_payload_format_check,
    )


def methods_of(text: str) -> dict[str, AuthenticationMethod]:
    """The methods of enhanced authentication that a setting names, imported. Raises PluginError."""
    found: dict[str, AuthenticationMethod] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, place = part.partition("=")
        module, _, attribute = place.partition(":")
        if not (name and module and attribute):
            raise PluginError(f"mqtt_authentication_methods: {part!r} is not NAME=module:class")
        try:
            method = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            advice = "install it where this broker is, or set PYTHONPATH"
            raise PluginError(f"mqtt_authentication_methods: {part!r}: {error}; {advice}") from error
        if not callable(method):
            raise PluginError(f"mqtt_authentication_methods: {part!r} is no class or function")
        found[name] = method
    return found


def reachable(host: str) -> str:
    """An address to connect to for one that was bound to, as it stands in a URL."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
