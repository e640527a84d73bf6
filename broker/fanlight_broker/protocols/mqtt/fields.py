"""The `fields` of an MQTT message: the properties of its PUBLISH as bytes, in every version's messages the same.

What belongs to one connection is not among them: Topic Alias, Subscription TagSet, and a Will's delay.
"""

from dataclasses import replace

from fanlight_broker.protocols.mqtt.data_types import Reader
from fanlight_broker.protocols.mqtt.properties import NONE, Properties, PropertyPlace, encode_properties


def fields_of(properties: Properties) -> tuple[bytes, int]:
    """The fields, and where in them the four bytes of the Message Expiry Interval are; -1: there is none."""
    if properties is NONE:
        return b"", -1
    kept = replace(properties, topic_alias=None, subscription_identifiers=(), will_delay_interval=None)
    octets = encode_properties(kept, PropertyPlace.PUBLISH)
    reader = Reader(octets, "fields")
    reader.variable_byte_integer("Property Length")
    rest = reader.rest()
    if properties.message_expiry_interval is None:
        return rest, -1
    # In the order of the table: before it stands only the Payload Format Indicator, of two bytes.
    return rest, 1 if properties.payload_format_indicator is None else 3
