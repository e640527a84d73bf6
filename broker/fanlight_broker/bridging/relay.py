"""One direction of a bridge: messages of one side to the other, acknowledged when the other has acknowledged them.

    source --Publish--> take --mapped, marked--> target.publish --Settled--> settled --> source.acknowledge

There is nothing here that must survive: what is not acknowledged is still the source's (decision 0029). In it are
as many messages at most as the source may have on their way, its Receive Maximum, and WAITING_BYTES_MAX beside what is
read at once.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fanlight_broker.bridging.client_state import ClientState
from fanlight_broker.bridging.topic_mapping import Mapped, TopicMapping
from fanlight_broker.protocols.mqtt.packets import Publish
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.reason_codes import ERROR, ReasonCode
from fanlight_broker.protocols.mqtt.version import V5

MARK: Final = "fanlight-bridged-by"  # the User Property with the name of a broker that a message has left by a bridge
MARKS_MAX: Final = 16
WAITING_BYTES_MAX: Final = 1024 * 1024  # of bodies that wait for room; past it the source is not read
# Refusals that may be over later, such as a full store; all others say something about the message.
LATER: Final = frozenset({ReasonCode.QUOTA_EXCEEDED, ReasonCode.SERVER_BUSY, ReasonCode.PACKET_IDENTIFIER_IN_USE})


class TryLater(Exception):
    """The other side cannot take messages now. They are sent again on the next connection."""


@dataclass(slots=True)
class RelayCounts:
    """Of one direction, since the start of the bridge."""

    messages: int = 0  # published on the other side
    refused: int = 0  # by the other side, for good
    too_large: int = 0  # for the other side
    looped: int = 0  # left out by their mark of origin
    unmatched: int = 0  # of no route (any more)
    unwanted: int = 0  # left out because nobody there wants them
    dropped: int = 0  # of QoS 0, because the other side did not read

    @property
    def lost(self) -> int:
        return self.refused + self.too_large + self.dropped


class Relay:
    """source, target  the two sides of the link
    outward  from this broker to the other one
    broker   the name of this broker in marks
    wanted   is a message on this topic wanted there?
    crowded  does the target not read what it is sent?
    """

    def __init__(
        self, source: ClientState, target: ClientState, mapping: TopicMapping, counts: RelayCounts, *, outward: bool,
        broker: str, wanted: Callable[[str], bool] = lambda topic: True, crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source, self._target = source, target
        self._mapping, self._counts = mapping, counts
        self._outward, self._broker = outward, broker
        self._wanted, self._crowded = wanted, crowded
        self._waiting: deque[tuple[Publish, int]] = deque()  # for room, each with its packet identifier at the source
        self._waiting_bytes = 0
        self._left: dict[int, int] = {}  # copies that are not settled, by packet identifier, if there are several
        self.refusal: tuple[str, ReasonCode] | None = None  # the first, for the log

    def __len__(self) -> int:
        """Messages that wait for room."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether nothing more should be read from the source until some of it has found room."""
        return self._waiting_bytes > WAITING_BYTES_MAX

    def take(self, packet: Publish) -> None:
        """A message of the source."""
        source_id = packet.packet_id or 0
        copies = self._copies(packet)
        if source_id:
            if not copies:
                self._source.acknowledge(source_id)
                return
            if len(copies) > 1:
                self._left[source_id] = len(copies)
        for copy in copies:
            if not copy.qos:
                self._send_once(copy)
                if source_id:
                    self._done(source_id)
            else:
                self._waiting.append((copy, source_id))
                self._waiting_bytes += len(copy.payload)
        self.advance()

    def advance(self) -> None:
        """Send what there is room for."""
        waiting, target = self._waiting, self._target
        while waiting and target.room:
            copy, source_id = waiting.popleft()
            self._waiting_bytes -= len(copy.payload)
            if target.publish(copy, source_id):
                continue
            self._counts.too_large += 1
            self.refusal = self.refusal or (copy.topic, ReasonCode.PACKET_TOO_LARGE)
            self._done(source_id)

    def settled(self, source_id: int, topic_reason: ReasonCode) -> None:
        """The target has answered a message. Raises TryLater."""
        if topic_reason >= ERROR:
            if topic_reason in LATER:
                raise TryLater(f"a message was refused for now: {topic_reason.name.lower()}")
            self._counts.refused += 1
            self.refusal = self.refusal or ("", topic_reason)
        else:
            self._counts.messages += 1
        self._done(source_id)
        self.advance()

    def _done(self, source_id: int) -> None:
        left = self._left.get(source_id, 1) - 1
        if left:
            self._left[source_id] = left
            return
        self._left.pop(source_id, None)
        self._source.acknowledge(source_id)

    def _send_once(self, copy: Publish) -> None:
        if self._crowded():
            self._counts.dropped += 1
        elif self._target.publish(copy):
            self._counts.messages += 1
        else:
            self._counts.too_large += 1
            self.refusal = self.refusal or (copy.topic, ReasonCode.PACKET_TOO_LARGE)

    def _copies(self, packet: Publish) -> list[Publish]:
        properties, counts = packet.properties, self._counts
        marks = [value for name, value in properties.user_properties if name == MARK]
        if marks and (self._broker in marks or len(marks) >= MARKS_MAX):
            counts.looped += 1
            return []
        mapped = self._mapping.of(packet.topic, properties.subscription_identifiers)
        if not mapped:
            counts.unmatched += 1
            return []
        if self._outward and not packet.retain:
            wanted = [each for each in mapped if self._wanted(each.topic)]
            counts.unwanted += len(mapped) - len(wanted)
            mapped = wanted
        passed = self._passed(properties)
        return [self._copy(packet, each, passed) for each in mapped]

    def _copy(self, packet: Publish, mapped: Mapped, properties: Properties) -> Publish:
        return Publish(
            mapped.topic, packet.payload, min(packet.qos, mapped.qos), packet.retain and mapped.retained,
            properties=properties,
        )

    def _passed(self, properties: Properties) -> Properties:
        """The properties that belong to the message, and the mark of this broker if it leaves it."""
        if self._target.version is not V5:
            return NONE
        marked = ((MARK, self._broker),) if self._outward else ()
        return replace(
            properties, subscription_identifiers=(), topic_alias=None,
            user_properties=(*properties.user_properties, *marked),
        )
