from typing import final

from fanlight_broker.core.share import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.protocols.mqtt.format import PublishFormat
from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.retained import RetainedTable
from fanlight_broker.wire.window import Window

@final
class MqttLane(Lane):
    check_text: bool
    user_properties_max: int
    fault_reason: int
    share: Share | None
    alias_max: int
    aliases_bytes: int
    first_byte: int
    def begin(
        self, format: PublishFormat, window: Window, *, alias_max: int, alias_bytes_max: int = ...,
        maximum_qos: int = 2, session: Session | None = None, retained: RetainedTable | None = None,
        unreleased_max: int = 0,
    ) -> None: ...
    def forget_aliases(self) -> None: ...
    @property
    def packet_id(self) -> int | None: ...
    @property
    def dup(self) -> bool: ...
    @property
    def is_text(self) -> bool: ...
    @property
    def has_delay(self) -> bool: ...
    @property
    def has_response(self) -> bool: ...
