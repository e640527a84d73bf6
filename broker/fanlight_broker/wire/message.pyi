from collections.abc import Mapping
from typing import Any, final

from fanlight_broker.wire.ledger import Account, Ledger

NEVER: float
HOLDER_BYTES: int
RETAIN_CLEAR: int
RETAIN_AS_PUBLISHED: int
RETAIN_SET: int

class Format:
    name: str
    family: Any
    stateful: bool
    def __init__(self, name: str, family: Any = None, *, stateful: bool = False) -> None: ...
    def went(self, variant: Variant) -> None: ...
    def header_text(self, message: Message, name: bytes) -> str | None: ...
    def template(
        self, message: Message, variant: Variant, again: bool, now: float
    ) -> tuple[bytes, int, int, bytes] | None: ...
    def tag_frame(self, tag: int) -> bytes: ...
    def read(self, message: Message) -> Any: ...
    def rewritten(self, message: Message, topic: bytes, headers: Mapping[str, Any]) -> Message | None: ...
    def write(self, content: Any) -> Message | None: ...

@final
class Message:
    format: Format
    syntax: int
    qos: int
    retain: bool
    expires_at: float
    expiry_hole: int
    format_data: int
    number: int
    def __init__(
        self,
        format: Format,
        topic: bytes,
        syntax: int,
        payload: bytes,
        *,
        fields: bytes = b"",
        qos: int = 0,
        retain: bool = False,
        expires_at: float = ...,
        expiry_hole: int = -1,
        format_data: int = 0,
    ) -> None: ...
    @property
    def topic(self) -> bytes: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def fields(self) -> bytes: ...
    @property
    def nbytes(self) -> int: ...
    def keep(self) -> Message: ...
    def postponed(self, seconds: float) -> Message: ...
    def expired(self, now: float) -> bool: ...
    def add_holder(self, ledger: Ledger, account: Account | None) -> int: ...
    def drop_holder(self, ledger: Ledger, account: Account | None) -> int: ...

@final
class Variant:
    format: Format
    qos: int
    retain: int
    identifiers: bytes
    firm: bool
    def __init__(self, format: Format, qos: int = 0, retain: int = ..., identifiers: bytes = b"") -> None: ...

class Variants:
    def __len__(self) -> int: ...
    def of(self, format: Format, qos: int = 0, retain: int = ..., identifiers: bytes = b"") -> Variant: ...
    def like(self, variant: Variant, format: Format) -> Variant: ...
