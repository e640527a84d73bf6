from collections.abc import Callable
from typing import final

from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.wire.screening import Screener
from matchcore.fields import Attributes

@final
class MessageScreener(Screener):
    reader: FieldReader
    def __init__(self, attributes: Attributes, wall: Callable[[], float] | None = None) -> None: ...
