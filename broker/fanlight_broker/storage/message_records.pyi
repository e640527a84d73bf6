from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fanlight_broker.wire.message import Format, Message

class MessageHead(NamedTuple):
    number: int
    slots: tuple[int, ...]
    slot_set: int
    end: int
    nbytes: int
    expires: float
    came: float

class Formats:
    def __init__(self, by_family: Mapping[str, Format]) -> None: ...

def read_head(body: bytes) -> MessageHead: ...
def read_message(body: bytes, formats: Mapping[str, Format], wall: float) -> Message: ...
def came_at(body: bytes) -> float: ...
def retained_record(message: Message, wall: float, origin: str | None, principal: str | None) -> bytes: ...
def message_record(message: Message, number: int, wall: float) -> bytes: ...
def read_retained(
    body: bytes, formats: Mapping[str, Format], wall: float
) -> tuple[Message, str | None, str | None]: ...
def read_all_retained(
    bodies: list[bytes], formats: Mapping[str, Format], wall: float, share_of: Callable[[str | None], Any]
) -> list[tuple[Message, Any, str | None]]: ...
