"""What a payload means: `BYTES` (nothing), `JSON`, `MSGPACK`, or any object with the same three members.

A serialiser's `content_type` goes with the message as its `content-type` header, and `message.value` chooses
by that header; the broker looks at neither. Payloads that are bytes pass every serialiser by.
"""

import json
from typing import Any, Protocol

from ._msgpack import Packer, unpack
from .errors import SerializationError


class Serializer(Protocol):
    """Turns values into payloads and back. `content_type` None: the header is left out."""

    @property
    def content_type(self) -> str | None: ...

    def encode(self, value: Any) -> bytes:
        """Raises SerializationError."""
        ...

    def decode(self, payload: bytes) -> Any:
        """Raises SerializationError."""
        ...


class _Bytes:
    content_type: str | None = None

    def encode(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise TypeError(
            f"a payload is bytes; got {type(value).__name__}. Encode it, or give a serializer, such as fanlight.JSON"
        )

    def decode(self, payload: bytes) -> bytes:
        return payload


class _Json:
    content_type: str | None = "application/json"

    def encode(self, value: Any) -> bytes:
        try:
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise SerializationError(f"cannot write as JSON: {error}") from error

    def decode(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except ValueError as error:
            raise SerializationError(f"payload of {len(payload)} bytes is not JSON: {error}") from error


class _Msgpack:
    content_type: str | None = "application/msgpack"

    def encode(self, value: Any) -> bytes:
        try:
            packed = Packer().packed(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise SerializationError(f"cannot write as msgpack: {error}") from error
        return packed

    def decode(self, payload: bytes) -> Any:
        try:
            return unpack(payload, strict_map_key=False)
        except (TypeError, ValueError) as error:
            raise SerializationError(f"payload of {len(payload)} bytes is not msgpack: {error}") from error


BYTES: Serializer = _Bytes()
JSON: Serializer = _Json()
MSGPACK: Serializer = _Msgpack()

_BY_CONTENT_TYPE: dict[str, Serializer] = {
    "application/json": JSON,
    "application/msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
}


def for_content_type(content_type: object, preferred: Serializer) -> Serializer:
    """The serialiser that reads `content_type`; `preferred` where it is its own, BYTES where nothing is
    known."""
    if not isinstance(content_type, str):
        return BYTES
    if content_type == preferred.content_type:
        return preferred
    essence = content_type.partition(";")[0].strip().lower()
    if essence == preferred.content_type:
        return preferred
    if essence.endswith("+json"):
        return JSON
    return _BY_CONTENT_TYPE.get(essence, BYTES)
