"""What the archive keeps of a message of a stream: core.streams.RecordingFormat."""

from typing import Final

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.amqp import convert
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, key_of_topic, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.properties import NO_PROPERTIES, encode_properties
from fanlight_broker.wire.message import Format, Message


class StreamFormat(Format):
    """Of messages on their way to the archive, whose thread reads them."""

    def recorded(self, message: Message) -> Message:
        return Message(
            self, message.topic, message.syntax, message.payload, qos=message.qos, retain=message.retain,
            fields=fields_of(message),
        )

    def read(self, message: Message) -> Content:
        return convert.record(message)


def fields_of(message: Message) -> bytes:
    """As AMQP has them. What AMQP cannot have of a message of others is left out."""
    if message.format.family == FORMAT.family:
        return message.fields
    content = message.format.read(message)
    made = FORMAT.write(content) if content is not None else None
    if made is not None:
        return made.fields
    key = key_of_topic(message.topic, message.syntax)
    return pack_fields(TOPIC_EXCHANGE, key or "", encode_properties(NO_PROPERTIES))


STREAM_FORMAT: Final = StreamFormat("amqp stream", "amqp stream")
