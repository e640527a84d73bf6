from collections.abc import Mapping
from typing import NamedTuple

from fanlight_broker.wire.message import Format, Message

TYPES: tuple[str, ...]
NO_TEXT: int
MESSAGE: int
MOVES: int
ENDED: int
SLOT: int
SLOT_SET: int
RETAINED: int
CLEARED: int
SESSION: int
SESSION_ENDED: int
SUBSCRIBED: int
UNSUBSCRIBED: int
RECEIVED: int
RELEASED: int
GROUP: int
GROUP_ENDED: int
MARK: int
ASSIGNED: int
GIVEN_UP: int
RETURNED: int

class BadRecord(ValueError): ...

class MessageHead(NamedTuple):
    number: int
    slots: tuple[int, ...]
    slot_set: int
    end: int

def read_head(body: bytes) -> MessageHead: ...
def topic_of(body: bytes) -> tuple[int, bytes]: ...
def read_message(body: bytes, formats: Mapping[str, Format], wall: float) -> Message: ...
def retained_record(message: Message, wall: float, origin: str | None, principal: str | None) -> bytes: ...
def message_record(message: Message, number: int, wall: float) -> bytes: ...
def read_retained(
    body: bytes, formats: Mapping[str, Format], wall: float
) -> tuple[Message, str | None, str | None]: ...
def read_moves(body: bytes) -> list[tuple[int, int, int, int, int]]: ...
def read_ended(body: bytes) -> list[tuple[int, int, int]]: ...
