"""What a kept message has beside topic and payload: its exchange, its routing key, and the properties as they came.

    | short string | short string | flags, properties |
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.amqp.data_types import OctetReader, short_string
from fanlight_broker.protocols.amqp.properties import BasicProperties, decode_properties

if TYPE_CHECKING:
    from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations

SYNTAX: Final = SYNTAXES.index("amqp")
TOPIC_EXCHANGE: Final = "amq.topic"  # whose keys are the broker's topics
DEFAULT_EXCHANGE: Final = "amq.default"  # its name for people and in permissions; in methods it is empty
EXCHANGE_ROOT: Final = b"$exchange."


class MessageFields(NamedTuple):
    exchange: bytes  # short strings, with their lengths
    routing_key: bytes
    encoded: bytes  # properties

    @property
    def properties(self) -> BasicProperties:
        return decode_properties(self.encoded)


def pack_fields(exchange: str, routing_key: str, encoded: bytes) -> bytes:
    return short_string(exchange) + short_string(routing_key) + encoded


def unpack_fields(octets: bytes) -> MessageFields:
    """Of a message that was packed here."""
    key_at = 1 + octets[0]
    end = key_at + 1 + octets[key_at]
    return MessageFields(octets[:key_at], octets[key_at:end], octets[end:])


def read_fields(octets: bytes) -> MessageFields:
    """Of octets from anywhere, the properties unread. Raises AmqpError."""
    reader = OctetReader(octets, "a recorded message")
    reader.short_string()
    key_at = reader.at
    reader.short_string()
    return MessageFields(octets[:key_at], octets[key_at : reader.at], octets[reader.at :])


def exchange_topic(exchange: str, routing_key: str) -> bytes:
    """The topic of a message to an exchange that is not the broker's topics."""
    return exchange_prefix(exchange) + routing_key.encode()


def exchange_prefix(exchange: str) -> bytes:
    name = (exchange or DEFAULT_EXCHANGE).replace("%", "%25").replace(".", "%2E")
    return EXCHANGE_ROOT + name.encode() + b"."


def texts(value: Any) -> list[str]:
    """The keys in a header CC; what is no text is left out."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def name_and_key(topic: bytes) -> tuple[str, str | None]:
    """Exchange and routing key of what `exchange_prefix` or `exchange_topic` has made; None: without a key."""
    name, dot, key = topic.removeprefix(EXCHANGE_ROOT).decode().partition(".")
    name = name.replace("%2E", ".").replace("%25", "%")
    return "" if name == DEFAULT_EXCHANGE else name, key if dot else None


def topic_of(exchange: str, routing_key: str, reached: "Destinations") -> bytes:
    """The topic of a message that exchanges have routed."""
    if reached.topics:
        return reached.topics[0].encode()
    return routing_key.encode() if exchange == TOPIC_EXCHANGE else exchange_topic(exchange, routing_key)


def key_of_topic(topic: bytes, syntax: int) -> str | None:
    """A topic as a routing key; None if it is too long for that, or no UTF-8."""
    if syntax != SYNTAX:
        topic = topic.replace(b"%", b"%25").replace(b".", b"%2E").replace(b"/", b".")
    try:
        return topic.decode() if len(topic) <= 255 else None
    except UnicodeDecodeError:
        return None
