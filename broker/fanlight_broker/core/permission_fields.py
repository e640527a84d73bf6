"""The fields of a message that rules of permissions ask for. Imported with the first rule that asks for some."""

from collections.abc import Callable, Collection
from typing import Any

from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Owner
from matchcore.fields import Attributes
from matchcore.kleene import Fields, key_of
from matchcore.selector import Attribute


class PermissionFields:
    """
    format_of  of bodies without a content type, by a topic and the number of its syntax: one of BODY_FORMATS, or 0
    wall       seconds since 1970, for `$time`
    """

    def __init__(
        self, attributes: Collection[Attribute], format_of: Callable[[bytes, int], int],
        wall: Callable[[], float] | None = None,
    ) -> None:
        known = Attributes()
        self._names = {known.acquire(each): key_of(each) for each in attributes}
        self._reader = FieldReader(known)
        self._format_of = format_of
        self._wall = wall

    def __call__(self, message: Message, publisher: Owner | None) -> Fields:
        """By `matchcore.kleene.key_of`; without those that the message has not."""
        who: Any = getattr(publisher, "subscriber", publisher)
        now = self._wall() if self._wall is not None else 0.0
        self._reader.read_fields(message, self._format_of(message.topic, message.syntax), who, now)
        return {self._names[number]: value for number, value in self._reader.values().items()}
