"""Subscriptions by content over MQTT fed with any text: `mqtt_filter_suffix` is on, and 5.0 has `where` as well.

A client subscribes to a filter with any suffix, with any selector as the User Property; another one publishes a message
with any User Properties. What must hold: the subscription is in force exactly if both selectors can be read and the
filter is valid without them; then it gets the message exactly if a subscription without selectors does and both are
true by the definition of selectors (matchcore.kleene). In 3.1.1 there is only the suffix. Used by test_fuzz.py and by
atheris (`make fuzz`).
"""

from collections.abc import Sequence

from fanlight_broker import event_log
from fanlight_broker.core.condition import Condition, condition_of, condition_of_suffix
from fanlight_broker.core.errors import InvalidFilter, InvalidSelector
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import Disconnect, Publish, SubAck, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V5, Version
from matchcore.grammar import split_suffix
from matchcore.kleene import Untyped, holds, with_topic
from tests.broker.protocols.mqtt.world import Peer, World
from tests.captured_logs import Silence

PUBLISHER = "p"
LONGEST = 8_000  # bytes of a text: selectors have 4 KiB

event_log.use(Silence())


def try_selectors(
    version: Version, filter: str, where: str | None, topic: str, fields: Sequence[tuple[str, str]]
) -> None:
    """Raises AssertionError if anything that must hold does not. The texts have no U+0000."""
    world = World(options=MqttOptions(filter_suffix=True))
    publisher, chooser, plain = (
        world.connect(name, kind) for name, kind in ((PUBLISHER, V5), ("chooser", version), ("plain", version))
    )
    topic_filter, suffix = split_suffix(filter)
    accepted, valid = subscribed(chooser, filter, where), subscribed(plain, topic_filter, None)
    try:
        condition = condition_as_said(suffix, where)
    except (InvalidSelector, InvalidFilter):
        assert not accepted
    else:
        assert accepted == valid
        publisher.say(Publish(topic, b"", properties=Properties(user_properties=tuple(fields)) if fields else NONE))
        assert not publisher.gone
        got, due = messages(chooser), messages(plain)
        if condition is not None and "$time" not in condition.where:  # $time is when the broker got it
            due = due if is_true(condition, topic, fields) else 0
            assert got == due, (condition.where, topic, fields)
    for peer in (chooser, plain, publisher):
        peer.protocol.lost("closed")
    assert not len(world.broker.router)


def subscribed(peer: Peer, filter: str, where: str | None) -> bool:
    """Whether it is in force; a refusal is a SUBACK, or in 5.0 a DISCONNECT with a reason."""
    said = NONE if where is None else Properties(user_properties=(("where", where),))
    peer.say(Subscribe(1, (Subscription(filter, 0),), said))
    match peer.packets():
        case [SubAck(1, (code,))]:
            return code < 0x80
        case [Disconnect(code)] if peer.version is V5:
            assert code >= 0x80
        case others:
            assert not others, others
            assert peer.gone
    return False


def condition_as_said(suffix: str | None, where: str | None) -> Condition | None:
    """Both selectors as one, as read and not as asked. Raises InvalidSelector, InvalidFilter."""
    condition = None if where is None else condition_of(where)
    return condition if suffix is None else condition_of_suffix(suffix.encode(), condition)


def is_true(condition: Condition, topic: str, fields: Sequence[tuple[str, str]]) -> bool:
    first: dict[str, object] = {}
    for name, value in fields:
        if not name.startswith(("payload.", "$")):  # no key of these says a header
            first.setdefault(name, Untyped(value))
    first |= {"$bytes": 0, "$qos": 0, "$retain": False, "$client": PUBLISHER}
    return holds(condition.selector, with_topic(first, topic.encode().split(b"/"))) is True


def messages(peer: Peer) -> int:
    return 0 if peer.gone else len(peer.messages())


TOPICS = "a", "a/b", "s/1/t"


def try_octets(data: bytes) -> None:
    """Any octets as the texts of one try: the first chooses version and topic, 0x1F is between the others."""
    if not data:
        return
    version = (Version.MQTT_3_1_1, V5)[data[0] & 1]
    texts = [part.decode(errors="ignore").replace("\0", "") for part in data[1:LONGEST].split(b"\x1f")]
    filter, where, *rest = (*texts, "", "")[: max(2, len(texts))]
    fields = list(zip(rest[::2], rest[1::2], strict=False))[:8]
    try_selectors(version, filter, where if version is V5 else None, TOPICS[(data[0] >> 1) % len(TOPICS)], fields)


def seeds() -> list[bytes]:
    """Valid ones to begin with."""
    tries = (
        ("s/+/t?location=roomA&value>25", "value < 30 AND location LIKE 'room%'", "location", "roomA", "value", "26"),
        ("#?a=1", "AT LEAST 2 OF (a = 1, b IS NULL, $words > 1)", "a", "1"),
        ("$share/g/a/#?x >= -1.5e3", "NOT (x BETWEEN 1 AND 5) OR \"x-y\" IN ('a', 2, TRUE)", "x", "7"),
    )
    return [bytes([first]) + "\x1f".join(texts).encode() for first in range(6) for texts in tries]
