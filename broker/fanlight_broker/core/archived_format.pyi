from collections.abc import Sequence

from fanlight_broker.wire.message import Format, Message

__all__ = ["ARCHIVED", "ArchivedFormat", "archived_message"]

class ArchivedFormat(Format): ...

ARCHIVED: ArchivedFormat

def archived_message(
    topic: bytes,
    syntax: int,
    payload: bytes,
    headers: Sequence[tuple[str, bytes | None]],
    content_type: str | None,
    qos: int,
    retain: bool,
) -> Message: ...
