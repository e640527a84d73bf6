from broker.protocols.mqtt.format import PublishFormat

class AliasFormat(PublishFormat):
    alias_max: int
    packet_max: int
    def __init__(self, alias_max: int, packet_max: int | None = None) -> None: ...
    @property
    def told(self) -> int: ...
