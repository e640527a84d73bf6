"""The methods of the classes connection, channel and access (1.4, 1.5), with RabbitMQ's.

The fields are in the order of the specification. What is reserved there has a default, and nobody looks at it.
"""

from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fanlight_broker.protocols.amqp.method_types import Bit, Long, LongStr, Octet, Short, ShortStr, Table

NO_ARGUMENTS: Final[MappingProxyType[str, Any]] = MappingProxyType({})


class ConnectionStart(NamedTuple):
    version_major: Octet
    version_minor: Octet
    server_properties: Table
    mechanisms: LongStr
    locales: LongStr


class ConnectionStartOk(NamedTuple):
    client_properties: Table
    mechanism: ShortStr
    response: LongStr
    locale: ShortStr = "en_US"


class ConnectionSecure(NamedTuple):
    challenge: LongStr


class ConnectionSecureOk(NamedTuple):
    response: LongStr


class ConnectionTune(NamedTuple):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


class ConnectionTuneOk(NamedTuple):
    channel_max: Short
    frame_max: Long
    heartbeat: Short


class ConnectionOpen(NamedTuple):
    virtual_host: ShortStr = "/"
    reserved: ShortStr = ""
    insist: Bit = False


class ConnectionOpenOk(NamedTuple):
    reserved: ShortStr = ""


class ConnectionClose(NamedTuple):
    reply_code: Short
    reply_text: ShortStr
    class_id: Short = 0
    method_id: Short = 0


class ConnectionCloseOk(NamedTuple):
    pass


class ConnectionBlocked(NamedTuple):
    reason: ShortStr = ""


class ConnectionUnblocked(NamedTuple):
    pass


class ConnectionUpdateSecret(NamedTuple):
    new_secret: LongStr
    reason: ShortStr = ""


class ConnectionUpdateSecretOk(NamedTuple):
    pass


class ChannelOpen(NamedTuple):
    reserved: ShortStr = ""


class ChannelOpenOk(NamedTuple):
    reserved: LongStr = b""


class ChannelFlow(NamedTuple):
    active: Bit


class ChannelFlowOk(NamedTuple):
    active: Bit


class ChannelClose(NamedTuple):
    reply_code: Short
    reply_text: ShortStr
    class_id: Short = 0
    method_id: Short = 0


class ChannelCloseOk(NamedTuple):
    pass


class AccessRequest(NamedTuple):
    """Of 0-8. RabbitMQ still answers it."""

    realm: ShortStr = "/data"
    exclusive: Bit = False
    passive: Bit = True
    active: Bit = True
    write: Bit = True
    read: Bit = True


class AccessRequestOk(NamedTuple):
    ticket: Short = 1
