from fanlight_broker.protocols.mqtt.format import PublishFormat
from fanlight_broker.wire.ledger import Pot

class AliasFormat(PublishFormat):
    alias_max: int
    packet_max: int
    octets: int
    def __init__(self, alias_max: int, packet_max: int | None = None, pot: Pot | None = None) -> None: ...
    def forget(self) -> None: ...
