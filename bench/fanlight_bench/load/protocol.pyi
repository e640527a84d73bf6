OTHER: int
DELIVERY: int
ACKNOWLEDGEMENT: int
RECEIVED: int
RELEASE: int
PING: int
WELCOME: int
GRANTED: int
REFUSAL: int

class Damaged(Exception): ...

class Dialect:
    name: str
    number_bytes: int
    counts: bool
    number_max: int
    def frames(self, data: bytes | bytearray, *, deliveries: bool = ...) -> tuple[list[tuple[int, bytes]], int]: ...
    def delivery(self, data: bytes) -> dict[str, object]: ...
    def reply(self, data: bytes) -> bytes: ...
