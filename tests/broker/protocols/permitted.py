"""Clients of all dialects on one broker, for tests of permissions: what each gets, and what it is refused."""

from typing import Any, Final

from fanlight_broker.core.identity import Identity
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Disconnect,
    PubAck,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    WillFields,
)
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

DIALECTS: Final = ("native", "mqtt3", "mqtt5")
Got = list[tuple[str, bytes]]


class World(mqtt.World):
    """One broker for both protocols. A user is verified, in the groups of `groups`, and has the rules of `own`."""

    plain = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.groups: dict[str, frozenset[str]] = {}
        self.own: dict[str, str] = {}  # rules that a user brings along, as one text

    def client(self, dialect: str, name: str = "", **options: Any) -> "Client":
        """One that is connected, whose user has the same name."""
        made = self.stranger(dialect, name, **options)
        assert made.let_in, (dialect, name, made.refusal)
        return made

    def stranger(self, dialect: str, name: str = "", **options: Any) -> "Client":
        """One that has tried to connect."""
        return NativeClient(self, name, **options) if dialect == "native" else MqttClient(
            self, V3 if dialect == "mqtt3" else V5, name, **options
        )

    def denied(self, action: str) -> int:
        return self.broker.enforcement.counters()[f"{action}_denied"]


class Known:
    """A peer whose user is verified."""

    world: Any
    protocol: Any
    log_in: bool

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        groups = self.world.groups.get(user, frozenset())
        identity = Identity(
            user or "", verified=bool(user), credential="x" if user else "", groups=groups,
            permissions=self.world.own.get(user, ""),
        )  # fmt: skip
        self.world.soon.append(lambda: self.protocol.authenticated(identity, self.world.now))
        return None


class NativePeer(Known, native.Peer):
    pass


class MqttPeer(Known, mqtt.Peer):
    pass


class Client:
    """What it is refused with last is in `refusal`: the protocol's own code."""

    peer: Any
    let_in = False
    refusal: Any = None
    lost: Any = None  # the reason with which its connection was closed

    def subscribe(self, filter: str, **options: Any) -> bool:
        raise NotImplementedError

    def publish(self, topic: str, payload: bytes = b"x", **options: Any) -> None:
        raise NotImplementedError

    def got(self) -> Got:
        """Topics, as MQTT spells them, and payloads since the last call."""
        raise NotImplementedError

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.got()]


class NativeClient(Client):
    def __init__(self, world: World, name: str, *, user: str | None = None, **_: Any) -> None:
        self.peer = NativePeer(world)  # type: ignore[arg-type]
        self.number = 0
        self.ended: list[tuple[int, str]] = []
        self.waiting: Got = []
        said = {"client": name} if name else {}
        self.peer.say(1, 1, said | ({"user": user or name, "password": "x"} if user or name else {}))
        frames = self.peer.frames()
        self.let_in = frames[0][0] == 2
        self.inbox = frames[0][2]["inbox"] if self.let_in else ""
        if not self.let_in:
            self.refusal = frames[0][2]

    def ask(self, *fields: Any) -> Any:
        """The result of OK, or None; then `refusal` has the code."""
        self.peer.say(*fields)
        answer = None
        for frame in self.peer.frames():
            if frame[0] in (7, 13):
                answer = frame
            else:
                self._note(frame)
        assert answer is not None
        if answer[0] == 13:
            self.refusal = answer[2]
            return None
        return answer[2] if len(answer) > 2 else {}

    def subscribe(self, filter: str, **options: Any) -> bool:
        self.number += 1
        return self.ask(6, 1, self.number, filter, {"syntax": 1, **options}) is not None

    def publish(
        self, topic: str, payload: bytes = b"x", *, reply: str | None = None, delay: float | None = None, qos: int = 0,
        headers: dict[str, Any] | None = None,
    ) -> None:
        options = None if delay is None else {"delay": delay}
        self.peer.say(3, 9 if qos else None, topic, payload, headers, 1, reply, None, options)
        for frame in self.peer.frames():
            if frame[0] == 13:
                self.refusal = frame[2]
            else:
                self._note(frame)

    def _note(self, frame: Any) -> None:
        if frame[0] == 4:
            topic, spelled = frame[2], len(frame) > 5 and frame[5] == 1
            self.waiting.append((topic if spelled else topic.replace(".", "/"), frame[3]))
        elif frame[0] == 32:
            self.waiting.append((frame[4], frame[5]))
        elif frame[0] == 9:
            self.ended.append((frame[1], frame[2]))
        elif frame[0] == 14:
            self.lost = frame[1]

    def got(self) -> Got:
        for frame in self.peer.frames():
            self._note(frame)
        found, self.waiting = self.waiting, []
        return found


class MqttClient(Client):
    def __init__(
        self, world: World, version: Version, name: str, *, will: WillFields | None = None, clean: bool = True,
        user: str | None = None,
    ) -> None:
        self.version = version
        self.peer = MqttPeer(world, version)
        self.waiting: Got = []
        self.packet_id = 0
        user = user or name
        fields: dict[str, Any] = {"will": will, "user_name": user or None, "password": b"x" if user else None}
        if version is V5 and not clean:
            fields["session_expiry_interval"] = 1_000
        self.peer.say(mqtt.connect(name or f"anonymous-{id(self)}", version, clean_start=clean, **fields))
        for packet in self.peer.packets():
            if isinstance(packet, ConnAck):
                self.let_in = packet.reason_code == 0
                self.refusal = None if self.let_in else int(packet.reason_code)
            else:
                self._note(packet)

    def subscribe(self, filter: str, *, where: str | None = None, group: str | None = None, qos: int = 0) -> bool:
        self.packet_id += 1
        properties = NONE if where is None else Properties(user_properties=(("where", where),))
        text = filter if group is None else f"$share/{group}/{filter}"
        self.peer.say(Subscribe(self.packet_id, (Subscription(text, qos),), properties))
        code = None
        for packet in self.peer.packets():
            if isinstance(packet, SubAck):
                (code,) = packet.reason_codes
            else:
                self._note(packet)
        assert code is not None
        if code >= 0x80:
            self.refusal = int(code)
        return code < 0x80

    def publish(
        self, topic: str, payload: bytes = b"x", *, reply: str | None = None, delay: float | None = None,
        qos: int = 0, retain: bool = False, headers: dict[str, str] | None = None,
    ) -> None:
        said = tuple((headers or {}).items()) + ((("fanlight-delay", str(delay)),) if delay is not None else ())
        properties = NONE
        if self.version is V5 and (said or reply is not None):
            properties = Properties(user_properties=said, response_topic=reply)
        self.packet_id += 1
        self.peer.say(Publish(topic, payload, qos, retain, packet_id=self.packet_id if qos else None,
                              properties=properties))  # fmt: skip
        for packet in self.peer.packets():
            self._note(packet)

    def _note(self, packet: Any) -> None:
        match packet:
            case Publish():
                self.waiting.append((packet.topic, packet.payload))
                if packet.qos == 1:
                    self.peer.say(PubAck(packet.packet_id or 0))
            case PubRec() if packet.reason_code < 0x80:
                self.peer.say(PubRel(packet.packet_id))
            case PubAck() | PubRec() if packet.reason_code >= 0x80:
                self.refusal = int(packet.reason_code)
            case Disconnect():
                self.lost = int(packet.reason_code)

    def got(self) -> Got:
        while packets := self.peer.packets():
            for packet in packets:
                self._note(packet)
        found, self.waiting = self.waiting, []
        return found
